"""Kernels that must be accused of one defect, and their relatives that must not.

The kernels are data: ptxsim_kernels/*.cu, explained in ptxsim_kernels/cases.py.
"""

from collections import Counter

import pytest
from ptxsim_kernels.cases import all_cases, make_arguments
from test_device_headers import needs_nvrtc

from torch_stitch import ptxsim

pytestmark = needs_nvrtc
CASES = all_cases()
KINDS = (
    "out_of_bounds misaligned uninitialized race divergent_barrier deadlock residency read_only "
    "unwritten nondeterministic budget"
).split()


def simulate(case):
    made = make_arguments(case)
    return ptxsim.run(
        case.source, "k", case.grid, case.block, made.values,
        inputs=made.inputs, outputs=made.outputs, shared_bytes=case.shared_bytes,
        cooperative=case.cooperative, **case.options,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_kernel_is_accused_of_what_it_does_and_of_nothing_else(case):
    findings = simulate(case).findings
    told = "\n".join(f"{finding.kind}: {finding.message}" for finding in findings)
    kinds = {finding.kind for finding in findings}
    assert kinds <= case.allowed, told
    assert not case.required or kinds & case.required, told or "nothing was found"
    lines = {finding.line for finding in findings if finding.kind in case.required}
    assert not case.marked or lines <= case.marked, told


def test_each_kind_has_three_that_are_accused_and_as_many_innocent_relatives():
    accused = Counter(kind for case in CASES.values() for kind in case.required)
    innocent = sum(not case.required for case in CASES.values())
    assert set(accused) == set(KINDS)
    assert min(accused.values()) >= 3 and innocent >= 3 * len(KINDS) and len(CASES) >= 140
