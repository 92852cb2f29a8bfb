"""Rows that no block holds, read once by pieces, on ptxsim (rewrite/reductions/reduce_pieces.h)."""

import math

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc

import torch_stitch
from tests.support.compare import compile_strictly, expect_equal

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]
ON_H200 = {"simulate": "fast", "target": "h200"}


def exponentials(x):
    x = x.float()
    return (x - x.amax(-1, keepdim=True)).exp().sum(-1)


def log_sum(x):
    return x.float().logsumexp(-1)


def extreme_rows(rows, columns):
    """With pieces of -inf, rows of nothing else, of inf, NaN, and of the largest numbers."""
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0)) * 3
    x[0], x[1, : columns // 2], x[2, 5], x[3, 7], x[4] = -math.inf, -math.inf, math.inf, math.nan, 2
    x[5], x[6, 9], x[7] = torch.finfo().min, torch.finfo().max, math.inf
    return x


# 72 rows fill a wave, so that pieces are those of threads; 8 are cut for blocks.
@pytest.mark.parametrize("rows, columns", [(72, 16411), (72, 20480), (8, 65644)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fn", [exponentials, log_sum])
def test_exponentials_of_pieces_add_up_to_those_of_rows(fn, dtype, rows, columns):
    x = extreme_rows(rows, columns).to(dtype)
    plan = torch_stitch.explain(fn, x, target="h200").plan
    # The rows are read once from memory, by whatever number of kernels.
    read = sum(kernel["bytes_read"] for kernel in plan["kernels"])
    assert read < 1.5 * x.numel() * x.element_size()
    torch._dynamo.reset()
    result, exact = compile_strictly(fn, options=ON_H200)(x), fn(x.double())
    expect_equal(result, exact.float(), rtol=1e-6, atol=1e-6)


def entropy(x):
    return -(x.softmax(-1) * x.log_softmax(-1)).sum(-1)


def entropy_of_logarithms(x):
    log = x.log_softmax(-1)
    return (log.exp() * -log).sum(-1)


def mean_by_softmax(x):
    return (x * x.softmax(-1)).sum(-1)


@pytest.mark.parametrize("rows, columns", [(72, 20480), (72, 16411), (12, 65536)])
@pytest.mark.parametrize("fn", [entropy, entropy_of_logarithms, mean_by_softmax])
def test_what_softmax_weighs_is_summed_piece_by_piece(fn, rows, columns):
    x = extreme_rows(rows, columns)
    # Half of the largest number, which a mean of rounded weights may pass.
    x[5], x[9], x[10] = x[5] / 2, x[9] + 1e4, x[10] * 1e3
    torch._dynamo.reset()
    if columns % 2048 == 0:
        plan = torch_stitch.explain(fn, x, target="h200").plan
        assert sum(kernel["bytes_read"] for kernel in plan["kernels"]) < 1.5 * 4 * x.numel()
    torch._dynamo.reset()
    expect_equal(compile_strictly(fn, options=ON_H200)(x), fn(x.double()).float(), rtol=2e-6,
                 atol=2e-6)


def test_an_entropy_of_16_bits_is_rounded_once():
    x = torch.randn(8, 65536, generator=torch.Generator().manual_seed(6)).bfloat16()
    exact = entropy(x.double()).bfloat16()
    expect_equal(compile_strictly(entropy, options=ON_H200)(x), exact, rtol=0, atol=0)


@pytest.mark.parametrize("target", ["cpu", "h200"])
@pytest.mark.parametrize("rows", [3, 72])
def test_exponentials_below_the_largest_of_all_rows(rows, target):
    x = torch.randn(rows, 70000, generator=torch.Generator().manual_seed(5))
    options = ON_H200 if target == "h200" else {}

    def fn(x):
        return (x - x.amax()).exp().sum(-1), (x - x.amax(0)).exp().sum(1)

    expect_equal(compile_strictly(fn, options=options)(x), fn(x), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("columns", [17000, 18432])
def test_rows_of_a_length_known_at_run_time(columns):
    compiled = compile_strictly(log_sum, options=ON_H200, dynamic=True)
    for rows, extent in ((72, columns), (74, columns + 3), (3, 5)):
        x = torch.randn(rows, extent, generator=torch.Generator().manual_seed(1))
        expect_equal(compiled(x), log_sum(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "shape, dim",
    [
        ((72, 18432), 1),
        ((72, 96, 192), (1, 2)),
        ((18, 132, 32, 32), (0, 2, 3)),  # images of channels, which lie apart
        ((17, 133, 31, 33), (0, 2, 3)),
    ],
)
def test_deviations_of_long_rows_keep_their_digits(shape, dim):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)) + 1e4
    plan = torch_stitch.explain(lambda x: x.var(dim), x, target="h200").plan
    assert sum(kernel["bytes_read"] for kernel in plan["kernels"]) < 1.5 * 4 * x.numel()
    torch._dynamo.reset()
    result = compile_strictly(lambda x: x.var(dim), options=ON_H200)(x)
    expect_equal(result, x.double().var(dim).float(), rtol=2e-6, atol=0)


@pytest.mark.parametrize("target", ["cpu", "h200"])
@pytest.mark.parametrize(
    "shape, dims",
    # Of 264 pieces of 1081345 elements the last is empty.
    [((521, 523), (0, 1)), ((1081345,), (0,)), ((3, 70001), (1,)), ((13, 5, 37, 41), (0, 2, 3))],
)
def test_deviations_of_odd_sizes_are_those_of_their_elements(shape, dims, target):
    options = ON_H200 if target == "h200" else {}
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)) + 1e4

    def fn(x):
        return torch.var_mean(x, dims)

    torch._dynamo.reset()
    compiled = compile_strictly(fn, options=options)
    for found, exact in zip(compiled(x), fn(x.double()), strict=True):
        expect_equal(found, exact.float(), rtol=2e-6, atol=0)
    for extreme in (math.inf, math.nan):
        x.view(-1)[7] = extreme
        expect_equal(compiled(x)[0], fn(x)[0], rtol=2e-6, atol=0)


def test_a_softmax_of_columns_that_no_block_holds():
    x = torch.randn(1100, 1000, generator=torch.Generator().manual_seed(3))
    compiled = compile_strictly(lambda x: x.softmax(0), options=ON_H200)
    expect_equal(compiled(x), x.softmax(0), rtol=1e-5, atol=1e-9)


def test_a_loss_of_many_classes_and_its_gradient():
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(72, 16500, generator=generator, requires_grad=True)
    target = torch.randint(16500, (72,), generator=generator)

    def step(fn):
        loss = fn(x, target)
        return loss.detach(), *torch.autograd.grad(loss, x)

    expect_equal(
        step(compile_strictly(F.cross_entropy, options=ON_H200)),
        step(F.cross_entropy),
        rtol=1e-5,
        atol=1e-9,
    )


@pytest.mark.parametrize("columns", [517, 20483])
def test_threads_past_the_end_of_a_row_are_no_part_of_it(columns):
    x = -torch.rand(72, columns, generator=torch.Generator().manual_seed(7)) - 1

    def fn(x):
        largest, smallest = x.amax(1), (-x).amin(1)
        return largest, smallest, x.argmax(1), (x < 0).all(1), (x / 2).prod(1), x.exp().sum(1)

    expect_equal(compile_strictly(fn, options=ON_H200)(x), fn(x), rtol=1e-5, atol=1e-6)
