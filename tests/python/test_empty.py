"""What is computed of nothing: eager's values or errors, whenever a size turns out to be 0."""

import functools

import pytest
import torch

import torch_stitch
from tests.support.compare import compile_strictly

pytestmark = pytest.mark.usefixtures("fresh")

CAPTURED = dict.fromkeys(("capture_scalar_outputs", "capture_dynamic_output_shape_ops"), True)
EXTREMES = [
    *((name, how) for name in ("max", "min") for how in ((), (0,), (1,), (-1,), (0, True))),
    *((name, how) for name in ("amax", "amin", "argmax", "argmin") for how in ((), (0,), (1,))),
    *((name, (0,)) for name in ("median", "mode", "softmax", "logsumexp", "cummax", "std")),
    *((name, ()) for name in ("sum", "prod", "mean", "all", "any", "median")),
]


def outcome_of(fn, x):
    try:
        return fn(x)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error)


def expect_same(got, expected, is_traced=True):
    """is_traced: torch may reject it while it traces, in words of its own."""
    if isinstance(expected, tuple) and isinstance(expected[0], type):
        assert isinstance(got, tuple) and isinstance(got[0], type), got
        if not is_traced:
            assert got == expected
    else:
        torch.testing.assert_close(got, expected, equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("name, how", EXTREMES)
def test_of_tensors_without_elements(name, how, shape):
    def fn(x):
        return getattr(x + 1, name)(*how)

    x = torch.zeros(shape)
    expected = outcome_of(fn, x)
    expect_same(outcome_of(compile_strictly(fn), x), expected, name not in ("max", "min"))
    assert torch_stitch.counters()["fallback_ops"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("how", [(), (0,), (1,), (-1, True)], ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_of_rows_that_later_calls_lack(name, how, trains, dtype):
    """Found in the data, and what a slice leaves of sizes that change."""

    def found(x):
        return getattr(x[x.sum(1) > 1], name)(*how)

    def left(x):
        return getattr(x[2:], name)(*how)

    def gradient(fn, x):
        x = x.clone().requires_grad_(trains and x.is_floating_point())
        results = fn(x)
        value = results if isinstance(results, torch.Tensor) else results[0]
        if x.requires_grad:
            value.sum().backward()
        return results, x.grad

    for fn in (found, left):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(CAPTURED):
            compiled = compile_strictly(fn, dynamic=True)
            for x in (torch.ones(6, 4), torch.ones(5, 3), torch.zeros(2, 4), torch.ones(7, 4)):
                x = x.to(dtype)
                expected = outcome_of(functools.partial(gradient, fn), x)
                got = outcome_of(functools.partial(gradient, compiled), x)
                expect_same(got, expected, is_traced=False)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


def test_sizes_that_cannot_be_0_are_not_checked():
    compiled = compile_strictly(lambda x: (x * 2).max(1)[0] + x.max(), dynamic=True)
    compiled(torch.randn(5, 7))
    assert torch_stitch.counters()["library_calls"] == 0


PIECES = {
    "sum": lambda x, d: x.sum(d, keepdim=True),
    "mean": lambda x, d: x.mean(d, keepdim=True),
    "product": lambda x, d: x.prod(d, keepdim=True),
    "deviation": lambda x, d: x.var(d, correction=0, keepdim=True),
}
WHOLES = {
    "minimum": lambda piece, x: x.minimum(piece),
    "softmax": lambda piece, x: (x + piece).softmax(-1),
    "sum": lambda piece, x: (x + piece).sum(0, keepdim=True) + x,
}
TARGETS = ["cpu", pytest.param("h200", marks=pytest.mark.simulated)]


def compile_for(target, fn, **how):
    return compile_strictly(fn, options={"target": target, "simulate": target != "cpu"}, **how)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("piece", PIECES)
def test_what_is_read_of_a_piece_without_elements_is_read_of_the_whole(piece, whole, target):
    """A loop of no trips fills no array that the loop behind it reads."""
    for shape in (1,), (3, 1), (1, 3), (3, 5):
        for dim in range(len(shape)):

            def fn(x, dim=dim):
                x = x.relu()
                reduced = PIECES[piece](x.narrow(dim, 0, 0), dim)
                return WHOLES[whole](reduced, x), reduced

            torch._dynamo.reset()
            x = torch.rand(shape)
            expect_same(compile_for(target, fn)(x), fn(x))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [3, 200])
def test_what_is_read_beside_rows_that_the_data_lacks(columns, target):
    def multiplied(x, rows):
        total = (rows * x.exp()).sum(0)
        return (total + x.exp()).softmax(-1), total

    def added(x, rows):
        total = (rows.T + x[:, None]).sum(1)
        return (total + x).softmax(-1), total

    x, z = torch.rand(columns), torch.rand(20, columns)
    for fn in (multiplied, added):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(CAPTURED):
            compiled = compile_for(target, lambda x, z, kept, fn=fn: fn(x, z[kept]), dynamic=True)
            for rows in (7, 0, 3):
                kept = torch.arange(20) < rows
                expect_same(compiled(x, z, kept), fn(x, z[kept]))
