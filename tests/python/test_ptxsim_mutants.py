"""A sample of the mutants of tests/fuzz; `make mutants` judges more than 500."""

import re
import sys
from pathlib import Path

import pytest
import torch
from test_device_headers import needs_nvrtc

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import ptx_equivalence  # noqa: E402
import ptxsim_mutants  # noqa: E402

pytestmark = needs_nvrtc


@pytest.mark.parametrize("name", ["softmax", "column_sum"])
def test_damage_to_a_generated_kernel_is_seen(name):
    mutants = ptxsim_mutants.examine(name, each=2)
    found = ptxsim_mutants.summary(mutants)
    assert len(mutants) >= 15
    assert found["killed_percent"] >= 95, found["not_killed"]
    assert found["kinds"]["barrier"]["killed"] > 0


MEETING = {"softmax_columns": 1, "shares_of_rows": 2, "total_of_rows": 1}  # how often


@pytest.mark.parametrize("name", MEETING)
def test_blocks_that_do_not_meet_are_seen(name):
    kernel = ptxsim_mutants.generate(name)
    mutants = list(ptxsim_mutants.grid_mutants_of(kernel))
    for mutant in mutants:
        ptxsim_mutants.judge(kernel, mutant, kernel.ptx.split("\n"), {})
    kinds = ptxsim_mutants.summary(mutants)["kinds"]
    assert kinds["grid barrier"] == {"killed": MEETING[name]}
    assert kinds["stale counter"] == {"killed": len(ptxsim_mutants.STALE)}


@pytest.mark.parametrize("name", MEETING)
def test_a_counter_is_used_again_whatever_its_top_bit(name):
    kernel = ptxsim_mutants.generate(name)
    kinds, bits = ptxsim_mutants.run(kernel, kernel.ptx, seed=0, flavour="normal")
    again = ptxsim_mutants.run(kernel, kernel.ptx, seed=0, flavour="normal", count=-(2**31))
    assert not kinds and not again[0]
    assert all(map(torch.equal, bits, again[1]))


SHUFFLE = "\tshfl.sync.bfly.b32 \t%r3|%p1, %r2, 4, 31, -1;"
UPPER_HALF = ["\tshr.u64 \t%rd2, %rd1, 32;", "\tcvt.u32.u64 \t%r2, %rd2;", SHUFFLE]
MASK = ["\tmov.u32 \t%r1, %tid.x;", "\tand.b32 \t%r2, %r1, 63;", "\tcvt.u64.u32 \t%rd1, %r2;"]
COUNTER = [
    "\tatom.acq_rel.gpu.global.add.u32 %r1, [%rd7], %r9;",
    "\tld.acquire.gpu.global.u32 %r2, [%rd7];",
    "\txor.b32  \t%r3, %r2, %r1;",
    "\tsetp.gt.s32 \t%p1, %r3, -1;",
]
SET = "\tsetp.ne.u32 \t%p1, %r2, 0;"
ADDRESS, VALUE = "\tst.global.f32 \t[%rd1], %f1;", "\tst.global.u32 \t[%rd9], %r2;"


def test_reasons_are_given_only_where_they_hold():
    def why(line, *lines):
        return ptx_equivalence.why_equivalent(line, lines)

    assert "%r2 is zero" in why(4, "\tcvt.u64.u32 \t%rd1, %r1;", *UPPER_HALF)
    assert not why(4, "\tld.global.u64 \t%rd1, [%rd9];", *UPPER_HALF)
    assert "%r3 is neither 0 nor -1" in why(4, *COUNTER)
    assert not why(4, COUNTER[1].replace("%r2", "%r1"), *COUNTER[1:])
    skip = ["\tsetp.gt.s32 \t%p1, %r1, 5;", "\t@%p1 bra \t$L__BB0_2;"]
    own = ["{", "\t.reg .pred \t%p1;", "\tld.global.u32 \t%r2, [%rd9];", SET, "}"]
    assert "indices of threads and blocks" in why(3, MASK[0], *skip, *own)
    assert "indices of threads and blocks" in why(3, MASK[0], *skip)
    assert not why(3, "\tld.global.u32 \t%r1, [%rd9];", *skip)
    assert "(lines 4)" in why(2, *MASK, ADDRESS)
    assert not why(2, *MASK, ADDRESS, VALUE)
    assert not why(2, "\tld.global.u32 \t%r1, [%rd9];", *MASK[1:], ADDRESS)
    assert not why(1, "\tbar.sync \t0;")


def test_a_number_that_stands_for_what_was_not_loaded_is_recognised():
    def why(*lines):
        return ptx_equivalence.why_not_loaded(len(lines) - 2, lines)

    guard = ["\tmov.u32 \t%r1, %tid.x;", "\tsetp.gt.s32 \t%p1, %r1, 5;"]
    number, skip = "\tmov.f32 \t%f1, 0f00000000;", "\t@%p1 bra \t$L__BB0_2;"
    load = "\tld.global.nc.f32 \t%f1, [%rd2+512];"
    assert "%p1, which is made from indices" in why(*guard, number, skip, load)
    assert not why(*guard, number, skip, load.replace("%f1", "%f2"))  # the identity of a sum
    assert not why(*guard, number, "$L__BB0_2:", load)  # what is loaded whatever the guard says
    of_data = [guard[0].replace("mov.u32", "ld.global.u32").replace("%tid.x", "[%rd1]"), guard[1]]
    assert not why(*of_data, number, skip, load)


def test_numbers_that_nobody_sees_are_not_counted_but_those_of_results_are():
    kernel = ptxsim_mutants.generate("variance")
    lines = ptxsim_mutants.inline_constants(kernel.ptx.split("\n"))
    verdicts = {}
    for number, line in enumerate(lines, 1):
        if re.search(r"mov\.f32\s+%f\d+, 0f00000000;", line):
            after = line.replace("0f00000000", "0f3F800000").strip()
            mutant = ptxsim_mutants.Mutant("variance", "identity", number, line.strip(), after)
            ptxsim_mutants.judge(kernel, mutant, lines, {})
            verdicts[mutant.verdict] = mutant.reason
    assert set(verdicts) == {"redundant", "killed"}  # what is not loaded; the least variance
    assert "NaN" in verdicts["redundant"]
