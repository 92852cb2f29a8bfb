"""Gradients where an element equals what was found among rounded ones: 16 bits, as in eager."""

import pytest
import torch

from tests.support.compare import compile_strictly

pytestmark = pytest.mark.usefixtures("fresh")


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
    "centred": lambda x, y: (x - x.mean(-1, keepdim=True)).amax(-1) * y.sum(-1),
    "of a softmax": lambda x, y: (x.softmax(-1) * y).amax(-1).log1p(),
    "of an output": lambda x, y: (scaled(x), (scaled(x) + y).amax(-1) * 2),
    "maximum": lambda x, y: torch.maximum(scaled(x), scaled(x) * (1 + y * 0)).tanh(),
    "places": lambda x, y: scaled(x).gather(-1, scaled(x).argmax(-1, keepdim=True)) * y,
}
# fmt: on


def gradients(fn, *inputs):
    given = [x.clone().requires_grad_() for x in inputs]
    results = fn(*given)
    results = results if isinstance(results, tuple) else (results,)
    sum((r.float() * (1 + i)).sum() for i, r in enumerate(results)).backward()
    return [x.grad if x.grad is not None else torch.zeros_like(x) for x in given]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_the_largest_still_is(name, dtype, dynamic):
    """Few places have a gradient: those must be eager's, and none is NaN."""
    fn, x, y = PROGRAMS[name], *torch.randn(2, 24, 37).to(dtype)
    found = gradients(compile_strictly(fn, dynamic=dynamic), x, y)
    for got, eager in zip(found, gradients(fn, x, y), strict=True):
        assert got.isfinite().all()
        assert got.ne(0).eq(eager.ne(0)).float().mean() > 0.99
        gap = (got.float() - eager.float()).norm()
        assert gap <= 2 * torch.finfo(dtype).eps * eager.float().norm()
