"""Stages of different mappings that a block runs one after the other, what passes between them in
its shared memory: which kernels have them, and what they compute.

ptxsim runs every launch under all orders of its blocks and warps and with all checks: what is read
before another warp of the block has stored it is a finding, which raises.
"""

import json
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc

import torch_stitch
from benchmarks.accuracy import in_fp64, judge
from tests.support.compare import compile_strictly
from torch_stitch.measure.reference import copy_tensors

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]


def softmax_permuted(x):
    return x.softmax(-1).transpose(1, 2).contiguous()


def norm_permuted(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias).permute(0, 2, 1).contiguous()


def norm_to_channels_first(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias).permute(0, 3, 1, 2).contiguous()


def norm_permuted_and_scaled(x, scale):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    return (y.transpose(1, 2) * scale[:, None]).contiguous().sigmoid()


def sums_and_permuted(x):
    return x.sum(-1), x.softmax(-1).transpose(1, 2).contiguous()


def pairs(x):
    row = x.exp().sum(-1).log()
    return row[:, :, None] - row[:, None, :]


def tanh_of_pairs(x):
    row = x.softmax(-1).amax(-1)
    return (row[:, :, None] * row[:, None, :]).tanh()


def reversed_groups(x):
    row = x.square().sum(-1)
    return row * row.flip(-1)


def half(*shape, dtype):
    return torch.randn(shape).to(dtype)


# name: function, inputs, longest sum
CASES = {
    "softmax": (softmax_permuted, [(3, 64, 96)], 96),
    "norm": (norm_permuted, [(32, 64, 96), (96,), (96,)], 96),
    "ragged columns": (softmax_permuted, [(12, 64, 67)], 67),
    "long rows": (softmax_permuted, [(16, 64, 1300)], 1300),
    "image": (norm_to_channels_first, [(2, 8, 8, 64), (64,), (64,)], 64),
    "bfloat16": (softmax_permuted, [partial(half, 3, 64, 192, dtype=torch.bfloat16)], 192),
    "float64": (softmax_permuted, [partial(half, 3, 64, 96, dtype=torch.float64)], 96),
    "and more": (norm_permuted_and_scaled, [(256, 64, 96), (96,)], 96),
    "beside a sum": (sums_and_permuted, [(3, 64, 96)], 96),
    "pairs": (pairs, [(256, 16, 64)], 64),
    "ragged blocks": (pairs, [(1057, 2, 64)], 64),
    "tanh of pairs": (tanh_of_pairs, [(531, 8, 64)], 64),
    "reversed": (reversed_groups, [(256, 16, 64)], 64),
}


def make_inputs(inputs):
    return [make() if callable(make) else torch.randn(make) for make in inputs]


def explain(name, target="h200"):
    fn, inputs, _ = CASES[name]
    report = torch_stitch.explain(fn, *make_inputs(inputs), target=target)
    return json.loads(report.to_json())


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_with_a_barrier_of_the_block(name):
    plan = explain(name)
    (kernel,) = plan["kernels"]
    assert kernel["spill_bytes"] == 0
    # Of long rows the largest element and the sum pass, and the second stage reads the row again.
    reads_again = name == "long rows"
    assert len(kernel["persistent"]) == 1 + reads_again
    for value, kept in kernel["persistent"].items():
        assert kept["home"] == "shared memory across the block barrier"
        assert kernel["scheme"][value] == "regional"
    assert "global" not in kernel["scheme"].values()
    assert plan["bytes_planned"] == plan["bytes_compulsory"] * (1.5 if reads_again else 1)


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_exact_as_eager(name):
    fn, inputs, terms = CASES[name]
    inputs = make_inputs(inputs)
    ours, eager, exact = (copy_tensors(inputs) for _ in range(3))
    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    found, expected = compiled(*ours), fn(*eager)
    verdict = judge(found, expected, in_fp64(fn, exact), terms)
    assert verdict["ok"], verdict
    counters = torch_stitch.counters()
    assert counters["kernels"] == 1 and counters["fallback_ops"] == 0, counters


@pytest.mark.parametrize("target", ["a100", "b200"])
def test_other_targets_compile(target):
    for name in ("softmax", "bfloat16", "pairs"):
        (kernel,) = explain(name, target)["kernels"]
        assert kernel["spill_bytes"] == 0 and "global" not in kernel["scheme"].values()


def test_nan_and_infinity_stay_in_their_rows():
    x = torch.randn(2, 32, 64)
    x[0, 3, 5], x[1, 0, 0], x[1, 31, 63] = torch.nan, torch.inf, -torch.inf
    compiled = compile_strictly(softmax_permuted, options={"target": "h200", "simulate": True})
    torch.testing.assert_close(compiled(x), softmax_permuted(x), equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 64, 96), (3, 0, 96), (1, 1, 1), (3, 61, 96)], ids=str)
def test_sizes_without_ranges_are_right_too(shape):
    compiled = compile_strictly(softmax_permuted, options={"target": "h200", "simulate": True})
    x = torch.randn(shape)
    torch.testing.assert_close(compiled(x), softmax_permuted(x))


def test_what_another_reads_too_passes_through_memory():
    def fn(x):
        row = x.exp().sum(-1)
        return row, row[:, :, None] - row[:, None, :]

    x = torch.randn(256, 16, 64)
    report = torch_stitch.explain(fn, x, target="h200")
    ((kernel,),) = [json.loads(report.to_json())["kernels"]]
    assert "global" in kernel["scheme"].values() and not kernel["persistent"]
    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    verdict = judge(compiled(x), fn(x), in_fp64(fn, (x,)), 64)
    assert verdict["ok"], verdict


def test_three_stages_of_one_block():
    def fn(x):
        row = x.exp().sum(-1).log()
        row = (row[:, :, None] - row[:, None, :]).tanh().sum(-1)
        return row[:, :, None] * row[:, None, :]

    x = torch.randn(256, 16, 64)
    plan = json.loads(torch_stitch.explain(fn, x, target="h200").to_json())
    (kernel,) = plan["kernels"]
    assert len(kernel["persistent"]) == 2 and "global" not in kernel["scheme"].values()
    assert plan["bytes_planned"] == plan["bytes_compulsory"]
    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    verdict = judge(compiled(x), fn(x), in_fp64(fn, (x,)), 64)
    assert verdict["ok"], verdict
    assert torch_stitch.counters()["kernels"] == 1


@pytest.mark.parametrize("rows", [(64, 1000), (1000, 64)], ids=str)
def test_rows_of_two_lengths_without_a_barrier_of_the_grid(rows):
    def fn(x, y, z):
        weight = (x + y).sum(1, keepdim=True).abs() + 1
        return (z / weight).sum(1, keepdim=True) * weight

    inputs = [torch.randn(257, rows[0]), torch.randn(257, 1), torch.randn(257, rows[1])]
    options = {"policy": "fusionstitching2020"}
    report = torch_stitch.explain(fn, *inputs, target="h200", **options)
    (kernel,) = json.loads(report.to_json())["kernels"]
    assert "global" not in kernel["scheme"].values() and kernel["spill_bytes"] == 0
    compiled = compile_strictly(fn, options=options | {"target": "h200", "simulate": True})
    verdict = judge(compiled(*inputs), fn(*inputs), in_fp64(fn, inputs), max(rows))
    assert verdict["ok"], verdict
    assert torch_stitch.counters()["kernels"] == 1


def test_a_result_that_is_returned_too():
    def fn(x):
        y = x.softmax(-1)
        return y, y.transpose(1, 2).contiguous()

    x = torch.randn(3, 64, 96)
    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    for found, expected in zip(compiled(x), fn(x), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_permuted_input_that_is_replaced_stays_whole():
    def fn(x, y):
        y.copy_(x.softmax(-1).transpose(1, 2))
        return y + 1

    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    x, ours, eager = torch.randn(3, 64, 96), torch.zeros(3, 96, 64), torch.zeros(3, 96, 64)
    torch.testing.assert_close(compiled(x, ours), fn(x, eager))
    torch.testing.assert_close(ours, eager)


def test_sizes_known_at_run_time_have_no_chains():
    compiled = compile_strictly(
        softmax_permuted, options={"target": "h200", "simulate": True}, dynamic=True
    )
    for rows in (64, 61, 1):
        x = torch.randn(3, rows, 96)
        torch.testing.assert_close(compiled(x), softmax_permuted(x))
