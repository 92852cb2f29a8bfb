"""Scatters into few rows on a CPU: chunks of the positions combine into rows of their own."""

import pytest
import torch
from test_scatter import (
    COUNT,
    DTYPES,
    ROWS,
    aten,
    check,
    compile_strictly,
    expect_calls,
    softmax_of_segments,
    some,
)

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.mark.parametrize("first", [301, 200_003])
def test_any_number_of_positions(first):
    def fn(index, source):
        return source.new_zeros(ROWS, *source.shape[1:]).index_add(0, index, source)

    compiled = compile_strictly(fn, dynamic=True)
    for count in (first, 7, 64, 100_001):
        check(fn, torch.randint(ROWS, (count,)), some((count,)), compiled=compiled, terms=count)


# Enough for several chunks; a count that they do not divide.
LARGE = 200_003


@pytest.mark.parametrize("kind", ["mixed", "sorted", "one row"])
@pytest.mark.parametrize("op", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("shape", [(), (6,)], ids=str)
def test_chunks_of_positions(op, kind, shape):
    index = torch.randint(ROWS, (LARGE,))
    index = {"mixed": index, "sorted": index.sort()[0], "one row": index * 0 + 5}[kind]
    source = 1 + some((LARGE, *shape)) * 1e-3 if op == "prod" else some((LARGE, *shape))

    def fn(x, index, source):
        index = index.view(-1, *[1] * len(shape)).expand_as(source)
        with_x = x.scatter_reduce(0, index, source * 0.5 + 0.5, op)
        return with_x, x.scatter_reduce(0, index, source, op, include_self=False)[index]

    check(fn, some((ROWS, *shape)), index, source, terms=LARGE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_chunks_of_any_dtype_and_dimension(dtype):
    def fn(x, index, source):
        return x.index_add(1, index, source), x.index_add(1, index, source.transpose(0, 2))

    x, source = some((7, ROWS, 7), dtype), some((1, 20_000, 7), dtype)
    check(fn, x, torch.randint(ROWS, (20_000,)), source.expand(7, -1, 7), terms=1000)
    source = some((7, 7, 40_000), dtype).transpose(1, 2)[:, ::2]
    check(fn, x, torch.randint(ROWS, (20_000,)), source, terms=1000)


def test_chunks_are_those_of_the_sizes_and_not_of_the_threads():
    def fn(x, index, source):
        return x.index_add(0, index, source), x.scatter_add(0, index, source.exp())

    inputs = some((ROWS,)), torch.randint(ROWS, (LARGE,)), some((LARGE,))
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch._dynamo.reset()
            torch.set_num_threads(count)
            results.append(compile_strictly(fn)(*inputs))
    finally:
        torch.set_num_threads(threads)
    for others in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], others))


@pytest.mark.parametrize("policy", ["none", "astitch", "fusionstitching2020"])
def test_chunks_under_every_policy(policy):
    def fn(scores, index):
        return softmax_of_segments(scores, index, ROWS)

    inputs = some((LARGE,)), torch.randint(ROWS, (LARGE,))
    compiled = torch.compile(fn, backend="stitch", options={"strict": True, "policy": policy})
    check(fn, *inputs, terms=LARGE, compiled=compiled)


def test_not_a_number_stays_in_its_row_of_a_chunk():
    x, index, source = some((ROWS,)), torch.randint(ROWS, (LARGE,)), some((LARGE,))
    source[7], source[LARGE - 1] = float("nan"), float("inf")

    def fn(x, index, source):
        return x.scatter_add(0, index, source), x.scatter_reduce(0, index, source, "amin")

    check(fn, x, index, source, terms=LARGE)


@pytest.mark.parametrize("place", [ROWS, -1])
def test_an_index_out_of_the_range_of_a_chunk_is_an_error(place):
    index, x, source = torch.randint(ROWS, (LARGE,)), some((ROWS,)), some((LARGE,))
    index[LARGE - 2] = place
    added = compile_strictly(lambda x, index, source: x.scatter_add(0, index, source))
    with torch.no_grad(), pytest.raises(RuntimeError, match="out of range in aten.scatter_add"):
        added(x, index, source)

    def put(x, index, source):
        return aten.index_put(x, [index], source, True)

    compiled = compile_strictly(put)
    if place < 0:
        return check(put, x, index, source, terms=LARGE, compiled=compiled)
    with torch.no_grad(), pytest.raises(IndexError, match="out of range in aten.index_put"):
        compiled(x, index, source)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool], ids=str)
def test_the_last_of_few_rows_needs_no_sort(dtype):
    def fn(x, index, places):
        rows, some_of_x = x.repeat(9, 1)[: index.shape[0]], x[:, :3].flip(0)[: places.shape[0]]
        ones = x.index_fill(0, index, 1), x.scatter(1, places, 1)
        return *ones, x.scatter(1, places, some_of_x), x.index_copy(0, index, rows)

    x, index = some((ROWS, 5)).to(dtype), torch.randint(ROWS, (COUNT,))
    check(fn, x, index, torch.randint(5, (ROWS - 2, 3)))
    torch._dynamo.reset()
    check(fn, x, index, torch.randint(5, (ROWS - 2, 3)), calls=3, dynamic=True)


def test_numbers_are_rows_of_one():
    def fn(x, index, source):
        kept = x.scatter(0, index, source), x.scatter(-1, index, 2.5), x.gather(0, index)
        reduced = [x.scatter_reduce(0, index, source, how) for how in ("sum", "amax", "prod")]
        return *kept, *reduced, x.gather(0, index[None]), x.index_select(0, index)

    check(fn, some(()), torch.tensor(0), some(()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scatters_that_are_told_to_add_or_multiply(dtype):
    def fn(x, index, source):
        of_values = x.scatter(0, index, 2, reduce="add"), x.scatter(0, index, 3, reduce="multiply")
        added = x.scatter(0, index, source, reduce="add")
        return *of_values, added, x.scatter(0, index, source.clamp(-1, 1), reduce="multiply")

    check(fn, some((ROWS, 5), dtype), torch.randint(ROWS, (30, 5)), some((30, 5), dtype))


def test_gradients_of_scatters_that_leave_out_what_was_there():
    def fn(x, index, source):
        return x.scatter_reduce(0, index, source, "mean", include_self=False).square()

    x, index, source = some((ROWS, 5)), torch.randint(ROWS, (30, 5)), some((30, 5))
    grads = []
    for run in (compile_strictly(fn), fn):
        leaves = [value.clone().requires_grad_() for value in (x, source)]
        grads.append(torch.autograd.grad(run(leaves[0], index, leaves[1]).sum(), leaves))
    torch.testing.assert_close(*grads)
    expect_calls(0)
