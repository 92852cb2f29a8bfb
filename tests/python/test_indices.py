"""Indices that are read from memory: what counts from the end, what is out of range."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import check, compile_strictly

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.mark.parametrize("fn", [
    lambda x, i: x[i] * 2,
    lambda x, i: x.index_select(0, i) + 1,
    lambda x, i: F.embedding(i, x) + 1,
    lambda x, i: x.gather(0, i[:, None].expand(-1, 4)) + 1,
], ids=["index", "index_select", "embedding", "gather"])  # fmt: skip
def test_an_index_out_of_range_is_an_error_and_the_process_lives(fn):
    x = torch.randn(5, 4)
    compiled = compile_strictly(fn)
    good, bad = torch.tensor([0, 4, 2]), torch.tensor([0, 5, 2])
    torch.testing.assert_close(compiled(x, good), fn(x, good))
    with pytest.raises((IndexError, RuntimeError), match="out of|range|bound"):
        compiled(x, bad)
    torch.testing.assert_close(compiled(x, good), fn(x, good))


def test_negative_indices_count_from_the_end():
    i, j = torch.tensor([-1, 0, -5]), torch.tensor([[2], [-4]])
    check(lambda x, i, j: (x[i] + 1, x[i[None], j] * 2, x[:, j, None] - 1), torch.randn(5, 4), i, j)


# fmt: off
@pytest.mark.parametrize("fn", [
    lambda x, i: x.index_select(0, i) + 1,
    lambda x, i: F.embedding(i, x) + 1,
    lambda x, i: x.gather(0, i[:, None].expand(-1, 4)) + 1,
    lambda x, i: x.scatter(0, i[:, None].expand(-1, 4), 2.0) + 1,
    lambda x, i: x.scatter_add(0, i[:, None].expand(-1, 4), x) + 1,
    lambda x, i: x.scatter(0, i[:1, None].expand(-1, 4), 2.0) + 1,
    lambda x, i: F.cross_entropy(x[:3], i),
], ids=["index_select", "embedding", "gather", "scatter", "scatter_add", "one_place", "loss"])
# fmt: on
def test_what_does_not_count_from_the_end_refuses_negative_indices_as_eager(fn):
    x = torch.randn(5, 4)
    compiled = compile_strictly(fn)
    good, bad = torch.tensor([0, 3, 2]), torch.tensor([-1, 3, 2])
    torch.testing.assert_close(compiled(x, good), fn(x, good))
    for call in (fn, compiled):
        with pytest.raises((IndexError, RuntimeError), match="out of|range|bound"):
            call(x, bad)
    torch.testing.assert_close(compiled(x, good), fn(x, good))


def test_negative_indices_in_writes_count_from_the_end():
    def fn(x, i, y):
        return x.index_put((i,), y) * 2, x.index_put((i[:1],), y[:1], accumulate=True) * 2

    check(fn, torch.randn(5, 4), torch.tensor([-1, 0, -4]), torch.randn(3, 4), copies=1)


def test_an_index_may_be_a_scalar():
    def fn(x, y, i):
        return x.index_select(0, i) * 2, y.index_select(0, i) * 2

    check(fn, torch.randn(5, 4), torch.randn(5), torch.tensor(3))
