"""Kernels store over operands that nobody but the call holds, and over nothing else."""

import numpy
import pytest
import torch
from torch.nn import functional as F

from tests.support.compare import compile_strictly
from torch_stitch.measure.memory import peak_bytes

pytestmark = pytest.mark.usefixtures("fresh")

WIDE = 256


def activated(x, w):
    return F.gelu(x @ w) * 2


def normalised(x, w):
    y = x @ w
    return (y - y.mean(-1, keepdim=True)).sin()


def shifted(x, w):
    return F.softmax(x * 3, -1), x @ w


def summed(x, w):
    y = (x @ w).sin()
    return y, y.sum(0), y.amax(1)


FUNCTIONS = [activated, normalised, shifted, summed]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_values_are_eagers_and_arguments_stay(fn):
    x, w = torch.randn(WIDE, WIDE), torch.randn(WIDE, WIDE)
    before, expected, compiled = x.clone(), fn(x, w), compile_strictly(fn)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, w), expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(compiled(x[:], w), expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(compiled(x.clone(), w), expected, rtol=1e-4, atol=1e-4)
    assert x.equal(before)


def test_memory_that_numpy_shows_stays():
    compiled = compile_strictly(lambda x: x.exp() + 1)
    array = numpy.ones((WIDE, WIDE), numpy.float32)
    for _ in range(3):
        compiled(torch.from_numpy(array))
    assert (array == 1).all()


def test_results_of_calls_share_no_memory():
    compiled = compile_strictly(activated)
    x, w = torch.randn(WIDE, WIDE), torch.randn(WIDE, WIDE)
    first = compiled(x, w)
    kept, second = first.clone(), compiled(x + 1, w)
    assert first.equal(kept) and first.data_ptr() != second.data_ptr()


@pytest.mark.parametrize("fn", [activated, normalised, summed])
def test_a_product_gives_its_memory_to_what_is_made_of_it(fn):
    x, w = torch.randn(4 * WIDE, WIDE), torch.randn(WIDE, WIDE)
    compiled = compile_strictly(fn)
    compiled(x, w)
    assert peak_bytes(lambda: compiled(x, w)) < 1.3 * x.nbytes


def test_a_graph_that_is_retained_has_the_same_gradients_twice():
    compiled = compile_strictly(lambda x, w: (F.gelu(x @ w).sin() @ w.T).square().sum())
    x, w = (torch.randn(WIDE, WIDE, requires_grad=True) for _ in range(2))
    loss = compiled(x, w)
    first = torch.autograd.grad(loss, (x, w), retain_graph=True)
    second = torch.autograd.grad(loss, (x, w), retain_graph=True)
    third = torch.autograd.grad(loss, (x, w))
    for a, b, c in zip(first, second, third, strict=True):
        assert a.equal(b) and a.equal(c)
