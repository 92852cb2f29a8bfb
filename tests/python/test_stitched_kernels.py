"""Kernels of several phases and of stages side by side: how many there are, and what they compute.

ptxsim runs every launch under all orders of its blocks and warps; a race between phases, a value
that is read before it is stored and a block that waits for ever are findings, which raise.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from test_device_headers import needs_nvrtc

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from show import capture_graphs  # noqa: E402

import torch_stitch  # noqa: E402
from benchmarks.accuracy import in_fp64, judge  # noqa: E402
from tests.support.compare import compile_strictly  # noqa: E402
from tests.support.stitched import CASES, make_inputs, run_case  # noqa: E402
from torch_stitch.measure.reference import copy_tensors  # noqa: E402

MEETINGS = re.compile(r"(?:grid_barrier|is_last_block)\(barrier\)|^  block_barrier", re.M)
ACROSS = " across the grid barrier"
pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]


def explain(case, sizes):
    """The plan of the call, of both its passes where it trains."""
    inputs = make_inputs(sizes, partial(torch.empty, requires_grad=case.trains))
    report = torch_stitch.explain(case.fn, *inputs, target="h200", training=case.trains)
    plan = json.loads(report.to_json())
    return list(plan.values()) if case.trains else [plan]


def kernels(case, sizes):
    """What the compiler makes of the call, with the kernels' texts."""
    inputs = make_inputs(sizes, partial(torch.empty, requires_grad=case.trains))
    graphs = capture_graphs(case.fn, inputs, target="h200", training=case.trains)
    return [kernel for graph in graphs for kernel in graph.compile()["kernels"]]


@pytest.mark.parametrize("name", CASES)
def test_each_pass_is_one_kernel(name):
    case = CASES[name]
    for plan in explain(case, case.large):
        assert plan["launches"] == len(plan["kernels"]) <= case.kernels, plan["cuts"]
        assert bool(plan["cuts"]) == (len(plan["kernels"]) > 1) and not plan["library_calls"]
        assert plan["kernels"][0]["spill_bytes"] == 0


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_exact_as_eager(name):
    case = CASES[name]
    inputs = make_inputs(case.small)
    ours, eager, exact = (copy_tensors(inputs) for _ in range(3))
    compiled = compile_strictly(case.fn, options={"target": "h200", "simulate": True})
    found = run_case(case, compiled, *ours)
    expected = run_case(case, case.fn, *eager)
    verdict = judge(found, expected, in_fp64(partial(run_case, case, case.fn), exact), case.terms)
    assert verdict["ok"], verdict
    counters = torch_stitch.counters()
    assert counters["kernels"] == 1 + case.trains and counters["fallback_ops"] == 0, counters


@pytest.mark.parametrize("name", CASES)
def test_small_sizes_have_blocks_that_meet(name):
    case = CASES[name]
    found = kernels(case, case.small)
    phases = [len(MEETINGS.findall(kernel["text"])) + 1 for kernel in found]
    assert max(phases) >= case.phases and min(kernel["grid"] for kernel in found) >= 2


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.keeps])
def test_what_several_phases_read_is_read_once(name):
    for sizes in (CASES[name].small, CASES[name].large):
        (plan,) = explain(CASES[name], sizes)
        (kernel,) = plan["kernels"]
        assert kernel["persistent"] and kernel["spill_bytes"] == 0, plan
        across = [v for v, kept in kernel["persistent"].items() if kept["home"].endswith(ACROSS)]
        assert across and all(kernel["scheme"][value] == "global" for value in across)
        for kept in kernel["persistent"].values():
            assert kept["bytes"] > 0 and kept["registers"] < kernel["registers"]
    assert plan["bytes_planned"] <= 1.3 * plan["bytes_compulsory"]


def test_values_that_pass_a_barrier_are_global():
    (plan,) = explain(CASES["absmax"], CASES["absmax"].large)
    schemes = plan["kernels"][0]["scheme"]
    # Whether each block combines the parts for itself, or one block does, is for the model.  The
    # input is kept in part.
    passed = {value.split()[0] for value, scheme in schemes.items() if scheme == "global"}
    assert passed == {"amax", "input"} and "store" in schemes.values(), schemes
    # The sums through memory, the input in registers.
    (plan,) = explain(CASES["kept_softmax_columns"], CASES["kept_softmax_columns"].large)
    schemes = plan["kernels"][0]["scheme"]
    passed = {value.split()[0] for value, scheme in schemes.items() if scheme == "global"}
    assert passed == {"amax", "sum", "input"}, schemes


def test_any_number_of_rows():
    def fn(x):
        return x.softmax(0), x / x.abs().amax()

    options = {"target": "h200", "simulate": True}
    compiled = compile_strictly(fn, options=options, dynamic=True)
    for rows in (701, 2, 1, 311):
        x = torch.randn(rows, 33)
        verdict = judge(compiled(x), fn(x), in_fp64(fn, (x,)), rows)
        assert verdict["ok"], (rows, verdict)


@pytest.mark.parametrize("before, extent", [(0, 2000), (8, 2000), (4, 2000), (0, 2001), (2040, 8)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_padded_rows_are_read_where_they_are_and_nowhere_else(before, extent, dtype):
    """Vectors where the bounds are multiples of one; memory next to the rows is not read."""

    def fn(x):
        padded = torch.nn.functional.pad(x, (before, 2048 - before - extent), value=-torch.inf)
        return padded.amax(1), padded.exp().sum(1)

    x = torch.randn(3, extent).to(dtype)
    options = {"target": "h200", "simulate": True}
    largest, sums = compile_strictly(fn, options=options)(x)
    assert largest.equal(x.amax(1))
    torch.testing.assert_close(sums.double(), x.double().exp().sum(1), rtol=5e-3, atol=0)
