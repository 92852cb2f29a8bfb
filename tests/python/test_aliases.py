"""Which results share memory with which, and with arguments: as in eager, also once written."""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import compile_strictly, expect_equal

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import alias_programs  # noqa: E402


def expect_same_memory(fn, make, dynamic=False):
    """Values, layouts, shared storages and gradients, before and after each tensor is written."""
    torch._dynamo.reset()
    difference = alias_programs.differ(make, fn, compile_strictly(fn, dynamic=dynamic))
    assert difference is None, difference


def whole(*sizes):
    return (torch.arange(torch.Size(sizes).numel()) % 7 - 3.0).reshape(sizes)


IDENTITIES = {
    "pow": lambda x: x.pow(1),
    "power": lambda x: x**1.0,
    "times one": lambda x: x * 1,
    "plus zero": lambda x: x + 0,
    "pad": lambda x: F.pad(x, (0, 0)),
    "cat": lambda x: torch.cat([x, x[:0]]),
    "flips": lambda x: x.flip(0).flip(0),
    "repeat": lambda x: x.repeat(1, 1),
    "roll": lambda x: x.roll(0),
    "sum of one": lambda x: x.unsqueeze(0).sum(0),
    "casts": lambda x: x.double().float(),
    "put back": lambda x: x.slice_scatter(x[1:], 0, 1),
    "put all": lambda x: torch.zeros_like(x).slice_scatter(x, 0),
    "part": lambda x: torch.cat([x, x + 1])[: x.shape[0]].clone(),
    "stack": lambda x: torch.stack([x])[0],
    "same": lambda x: x.to(x.dtype),
    "contiguous": lambda x: x.contiguous(),
    "view": lambda x: x.view(x.shape),
    "transposed": lambda x: x.t().contiguous().t(),
    "transposed twice": lambda x: x.t().t(),
}


KINDS = pytest.mark.parametrize("trains,dynamic", [(False, False), (False, True), (True, False)])


@KINDS
def test_an_identity_returns_its_input_only_where_eager_does(trains, dynamic):
    def fn(x):
        y = x * 2
        return y, *(each(z) for each in IDENTITIES.values() for z in (x, y))

    expect_same_memory(fn, lambda: (whole(3, 5).requires_grad_(trains),), dynamic)


EQUAL = {
    "reductions": lambda x: (x.amax(1), x.max(1).values, x.max(1).values),
    "sums": lambda x: (x.sum(0), x.sum(0), x.sum((0,))),
    "names": lambda x: (x + 1, x + 1, torch.add(x, 1)),
    "views of one": lambda x: ((x + 1)[0], (x + 1)[0]),
    "pieces": lambda x: (x + 1).split(1) + (x + 1).unbind(),
    "negated": lambda x: (x, x.neg().neg(), (-x).neg().neg()),
    "turned": lambda x: ((x + 1).t(), (x + 1).t().contiguous().t(), (x + 1)),
    "flipped": lambda x: ((x + 1).flip(0), (x + 1).flip(0).flip(0), x.flip(1)),
    "constants": lambda x: (torch.zeros_like(x), torch.zeros_like(x), x * 0),
    "calls": lambda x: (x @ x.t(), x @ x.t(), torch.mm(x, x.t()).clone()),
    "several results": lambda x: (*x.sort(1), *torch.sort(x, 1)),
}


@KINDS
def test_equal_values_share_memory_only_where_eager_shares_it(trains, dynamic):
    def fn(x):
        return *(y for each in EQUAL.values() for y in each(x)),

    expect_same_memory(fn, lambda: (whole(3, 5).requires_grad_(trains),), dynamic)


def test_a_saved_value_does_not_change_with_a_result_that_equals_it():
    def fn(x):
        y = x.exp()
        return y * 1, y.sum(), y + 0

    x = torch.randn(5, 7)
    mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    for leaf, run in ((mine, compile_strictly(fn)), (theirs, fn)):
        first, total, last = run(leaf)
        with torch.no_grad():
            first.zero_()
            last.fill_(7)
        total.backward()
    expect_equal(mine.grad, theirs.grad, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(5000, 5008))
def test_a_random_program_of_aliases_and_writes_is_eagers(seed):
    difference = alias_programs.check(seed)
    assert difference is None or difference.startswith("torch: "), alias_programs.describe(seed)
