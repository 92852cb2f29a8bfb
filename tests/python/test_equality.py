"""Gradients where an element equals what was found among rounded ones: 16 bits, as in eager."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import compile_strictly, expect_as_exact

pytestmark = pytest.mark.usefixtures("fresh")


norm = torch.linalg.vector_norm


def scaled(x):
    return x * 1.7 + 0.3


# fmt: off
PROGRAMS = {
    "amax": lambda x, y: x / x.abs().amax(-1, keepdim=True),
    "of a chain": lambda x, y: (scaled(x) - scaled(x).amax(-1, keepdim=True)).exp(),
    "of a product": lambda x, y: ((x @ y.t()) * 0.3 - ((x @ y.t()) * 0.3).amax(-1, True)).exp(),
    "amin": lambda x, y: scaled(x).tanh() * scaled(x).tanh().amin(0),
    "aminmax": lambda x, y: torch.add(*(scaled(x) * y).aminmax(dim=-1)),
    "whole": lambda x, y: scaled(x).sin() / scaled(x).sin().abs().amax(),
    "norm": lambda x, y: torch.linalg.vector_norm(scaled(x) * y, float("inf"), dim=-1) * 2,
    "quotient of a norm": lambda x, y: x / norm(x * 1.1, float("inf"), dim=-1, keepdim=True),
    "least": lambda x, y: norm(scaled(x) * y, float("-inf"), dim=-1) * 2,
    "quotient of the least": lambda x, y: y / (1 + norm(x * 1.1, float("-inf"), dim=0)),
    "least of a norm": lambda x, y: norm(F.layer_norm(scaled(x), (37,)), float("-inf"), dim=-1) * 2,
    "centred": lambda x, y: (x - x.mean(-1, keepdim=True)).amax(-1) * y.sum(-1),
    "of a softmax": lambda x, y: (x.softmax(-1) * y).amax(-1).log1p(),
    "of an output": lambda x, y: (scaled(x), (scaled(x) + y).amax(-1) * 2),
    "maximum": lambda x, y: torch.maximum(scaled(x), scaled(x) * (1 + y * 0)).sin(),
    "places": lambda x, y: scaled(x).gather(-1, scaled(x).argmax(-1, keepdim=True)) * y,
}
# fmt: on


def gradients(fn, *inputs):
    given = [x.clone().requires_grad_() for x in inputs]
    results = fn(*given)
    results = results if isinstance(results, tuple) else (results,)
    sum((r.float() * (1 + i)).sum() for i, r in enumerate(results)).backward()
    return [x.grad if x.grad is not None else torch.zeros_like(x) for x in given]


def both_gradients(fn, *inputs, dynamic=None):
    """Those found and eager's; no pair where eager has none, as torch 2.11 of aminmax."""
    compiled = compile_strictly(fn, dynamic=dynamic)
    try:
        expected = gradients(fn, *inputs)
    except RuntimeError as error:
        missing = "derivative for aten::aminmax is not implemented"
        assert str(error) == missing
        with pytest.raises(RuntimeError, match=missing):
            gradients(compiled, *inputs)
        return ()
    return zip(gradients(compiled, *inputs), expected, strict=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_the_largest_still_is(name, dtype, dynamic):
    """Few places have a gradient: those must be eager's, and none is NaN."""
    fn, x, y = PROGRAMS[name], *torch.randn(2, 24, 37).to(dtype)
    for got, eager in both_gradients(fn, x, y, dynamic=dynamic):
        assert got.isfinite().all()
        assert got.ne(0).eq(eager.ne(0)).float().mean() > 0.99
        gap = (got.float() - eager.float()).norm()
        assert gap <= 2 * torch.finfo(dtype).eps * eager.float().norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_what_rounds_to_one_has_gradients_at_least_as_exact_as_eagers(dtype):
    """Eager's are 0 where tanh is 1 in 16 bits; made again in backward, it is not rounded."""
    fn, x, y = lambda x, y: (scaled(x) * 2).tanh() * y, *torch.randn(2, 24, 37).to(dtype)
    exact = gradients(fn, x.double(), y.double())
    expected, found = gradients(fn, x, y), gradients(compile_strictly(fn), x, y)
    expect_as_exact(found, expected, exact, x.numel())
    assert expected[0].eq(0).any() and not exact[0].eq(0).any()


SUMS = {
    "sum": lambda x: torch.maximum(x.tanh(), x.tanh().sum(2, keepdim=True)).amax((1, 2)),
    "mean": lambda x: (x.exp() - x.exp().mean(1, keepdim=True)).amin((0, 1)),
    "var": lambda x: (x * x.var(2, keepdim=True)).aminmax(dim=0).max,
    "prod": lambda x: (x - x.prod(1, keepdim=True)).abs().amax(),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_few_are_not_made_again_with_other_last_bits(name):
    """Where they were, no element would equal the extreme that was saved, and 0 / 0 is NaN."""
    for seed in range(5):
        torch.manual_seed(seed)
        x = torch.randn(64, 3, 3)
        for found, eager in both_gradients(SUMS[name], x):
            assert found.isfinite().all()
            torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-5)


def shifted(find, factor=5):
    """A softmax as written by hand: values of up to 50, whose half ulp in bf16 is an eighth."""

    def fn(x, y):
        s = x * y * factor
        e = (s - find(s)).exp()
        return e / e.sum(-1, keepdim=True)

    return fn


# fmt: off
SHIFTS = {
    "max": lambda s: s.max(-1, keepdim=True).values,
    "max, detached": lambda s: s.max(-1, keepdim=True).values.detach(),
    "max of all": lambda s: s.max().detach(),
    "max, bounded": lambda s: s.max(-1, keepdim=True).values.clamp(min=-30),
    "max, no dimension kept": lambda s: s.max(-1).values[:, None],
    "amax": lambda s: s.amax(-1, keepdim=True),
    "aminmax": lambda s: s.detach().aminmax(dim=-1, keepdim=True).max,
    "largest": lambda s: s.topk(3).values[:, :1],
    "sorted": lambda s: s.sort(-1).values[:, -1:],
    "place": lambda s: s.gather(-1, s.argmax(-1, keepdim=True)),
    "mean": lambda s: s.mean(-1, keepdim=True) + 10,
    "one of them": lambda s: s[:, :1],
}
# fmt: on


def expect_exact_gradients(fn, *inputs, dynamic=None):
    wide = [x.double() for x in inputs]
    found = gradients(compile_strictly(fn, dynamic=dynamic), *inputs)
    expect_as_exact(found, gradients(fn, *inputs), gradients(fn, *wide), inputs[0].numel())


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", SHIFTS)
def test_what_is_subtracted_was_found_among_what_is_made_again(name, dtype, dynamic):
    softmax, weights = shifted(SHIFTS[name]), torch.linspace(0.5, 1.5, 128)
    x, y = torch.randn(2, 64, 128).to(dtype)
    expect_exact_gradients(lambda x, y: softmax(x, y).float() * weights, x, y, dynamic=dynamic)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_norm_of_equal_values_has_no_gradient(columns, dtype):
    """The mean that is saved in 16 bits is all of them."""
    x, y = torch.randn(2, 30, 1).to(dtype)
    norms = [
        lambda x, y: F.layer_norm(x.expand(30, columns) * y, (columns,)),
        lambda x, y: F.layer_norm(x.expand(30, columns) * y, (columns,)).amax(-1),
        lambda x, y: F.layer_norm((x + y).expand(30, columns), (columns,)),
    ]
    for fn in norms:
        assert all(g.eq(0).all() for g in gradients(compile_strictly(fn), x, y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mean", [1, 10, 30])
def test_norms_of_far_values_keep_the_mean_of_what_they_save(mean, dtype):
    """Sums of 16 bits with a mean of 100 deviations, all rounded to the same side."""
    weights = torch.linspace(0.5, 1.5, 96)
    x, y = torch.randn(64, 96) * 0.1 + mean, torch.rand(64, 96) * 0.01 + 1.7
    x, y, w = x.to(dtype), y.to(dtype), torch.ones(96).to(dtype)
    for fn in (
        lambda x, y, w: F.layer_norm(x + y, (96,), w) * weights,
        lambda x, y, w: F.layer_norm(x + y, (96,), w, w).tanh(),
        lambda x, y, w: F.group_norm(x + y, 4, w) * weights,
        lambda x, y, w: (x + y - (x + y).mean(-1, keepdim=True)) * w,
    ):
        expect_exact_gradients(fn, x, y, w)
