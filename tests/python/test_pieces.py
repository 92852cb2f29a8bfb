"""Rows normalised and rotated: a second pass reads values on chip at other places of the row."""

import pytest
import torch

import torch_stitch
from benchmarks.accuracy import judge_tensor

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


def normed(x, weight):
    wide = x if x.dtype == torch.float64 else x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return wide.to(x.dtype) * weight


def scaled(x, weight):
    return torch.softmax(x, -1) * weight


def swap_halves(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def swap_pairs(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def swap_half_of_the_row(x):
    first, second, rest = x.split((x.shape[-1] // 4, x.shape[-1] // 4, x.shape[-1] // 2), -1)
    return torch.cat((torch.cat((-second, first), -1), rest), -1)


def turn_thirds(x):
    a, b, c = x.chunk(3, dim=-1)
    return torch.cat((c, a, -b), dim=-1)


def check(fn, *inputs, dynamic=False, compiled=None):
    """As near to fp64 as eager is, on one kernel per graph."""
    compiled = compiled or torch.compile(
        fn, backend="stitch", fullgraph=True, dynamic=dynamic, options={"strict": True}
    )
    wide = [x.double() for x in inputs]
    for got, eager, exact in zip(compiled(*inputs), fn(*inputs), fn(*wide), strict=True):
        assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
        verdict = judge_tensor(got, eager, exact, inputs[0].shape[-1])
        assert verdict["ok"], verdict
    counters = torch_stitch.counters()
    assert counters["library_calls"] == counters["fallback_ops"] == 0, counters
    return compiled


def rows(shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype), torch.linspace(0.5, 2, shape[-1]).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("swap", [swap_halves, swap_pairs, swap_half_of_the_row])
@pytest.mark.parametrize("scale", [normed, scaled])
def test_rotations_of_rows(scale, swap, dtype):
    def fn(x, weight):
        n = scale(x, weight)
        return (n + swap(n) * 0.5,)

    check(fn, *rows((3, 5, 2, 64), dtype))
    assert torch_stitch.counters()["kernels"] == 1


@pytest.mark.parametrize("shape", [(1, 2), (7, 6), (5, 2, 34), (2, 3, 1202), (3, 20000)])
@pytest.mark.parametrize("swap", [swap_halves, swap_pairs])
def test_rotations_of_odd_sizes(swap, shape):
    def fn(x, weight):
        n = scaled(x, weight)
        return (n + swap(n),)

    check(fn, *rows(shape))


@pytest.mark.parametrize("cols", [3, 33, 96])
def test_thirds(cols):
    def fn(x, weight):
        n = normed(x, weight)
        return (n * 2 + turn_thirds(n),)

    check(fn, *rows((11, cols)))


def test_the_rotated_value_is_an_output_too():
    def fn(x, weight):
        n = normed(x, weight)
        return n, n + swap_halves(n), n.amax(-1)

    check(fn, *rows((4, 3, 64), torch.bfloat16))


def test_only_half_of_the_rotation_is_read():
    def fn(x, weight):
        n = scaled(x, weight)
        return (n + swap_halves(n), swap_halves(n)[..., : n.shape[-1] // 2].exp())

    check(fn, *rows((6, 32)))


@pytest.mark.parametrize("swap", [swap_halves, swap_pairs])
def test_a_batch_of_any_size(swap):
    def fn(x, weight):
        n = normed(x, weight)
        return (n + swap(n),)

    compiled = None
    for batch in (6, 13, 1, 257):
        x, weight = rows((batch, 3, 40), torch.bfloat16)
        torch._dynamo.mark_dynamic(x, 0) if batch > 1 else None
        compiled = check(fn, x, weight, dynamic=None, compiled=compiled)


def test_columns_of_any_size():
    def fn(x, weight):
        n = scaled(x, weight)
        return (n + swap_halves(n),)

    compiled = None
    for cols in (8, 14, 130):
        compiled = check(fn, *rows((5, cols)), dynamic=True, compiled=compiled)


def test_not_a_number_stays_in_its_row():
    def fn(x, weight):
        n = scaled(x, weight)
        return (n + swap_halves(n),)

    x, weight = rows((4, 16))
    x[1, 3], x[2, 9] = float("nan"), float("-inf")
    compiled = torch.compile(fn, backend="stitch", fullgraph=True, options={"strict": True})
    (got,), (expected,) = compiled(x, weight), fn(x, weight)
    torch.testing.assert_close(got, expected, equal_nan=True)


def test_a_value_first_read_under_a_condition():
    def fn(x):
        e = x.exp()
        wider = torch.nn.functional.pad(e, (0, 4))
        return (e - wider[:, : x.shape[1]].amax(-1, keepdim=True),)

    check(fn, torch.randn(9, 100))
