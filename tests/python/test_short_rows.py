"""Ops along short rows are written out, in eager's order; along long ones they are one call."""

import pytest
import torch
from support.compare import as_bits, check, compile_strictly, expect_as_exact, expect_stitched
from support.stitched import run_with_gradients

import torch_stitch

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
NUMBERS = [*FLOATS, torch.int64, torch.int32, torch.uint8]
ACCUMULATIONS = [torch.cumsum, torch.cumprod]


def expect_one_call(fn, *inputs):
    """Eager's values by the library's own call, which stands alone."""
    expected = fn(*inputs)
    assert as_bits(compile_strictly(fn)(*inputs)).equal(as_bits(expected))
    counters = torch_stitch.counters()
    assert (counters["library_calls"], counters["kernels"]) == (1, 0), counters


def draw(dtype, *shape):
    """With NaN, infinities and -0 in rows of their own, and before and behind numbers."""
    x = (torch.randn(shape) * 2).to(dtype)
    if dtype.is_floating_point:
        x[0] = -0.0
        x[1, 2], x[2, 3], x[3, 1], x[3, 2] = torch.nan, torch.inf, torch.inf, -torch.inf
    return x


@pytest.mark.parametrize("dtype", [*NUMBERS, torch.bool], ids=str)
@pytest.mark.parametrize("op", ACCUMULATIONS)
def test_running_sums_and_products_have_eagers_bits(fresh, op, dtype):
    check(lambda x, y: (op(x, 1), op(y, -1)), draw(dtype, 5, 13, 21), draw(dtype, 33, 16))


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 3), (4, 1), ()], ids=str)
def test_running_values_of_nothing_or_one_element(fresh, op, shape):
    x = torch.randn(shape)
    check(lambda x: op(x * 2, 0), x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("op", ACCUMULATIONS)
def test_running_values_take_the_dtype_that_is_asked_for(fresh, op):
    x = torch.randint(-100, 100, (8, 40))
    check(lambda x: (op(x, 0, dtype=torch.int8), op(x, 0, dtype=torch.float32)), x)


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
def test_running_values_of_transposed_rows_lie_as_eagers_do(fresh, op):
    check(lambda x: op(x.t() * 0.5, 0), torch.randn(40, 8), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
def test_running_values_along_long_rows_are_one_call(fresh, op):
    expect_one_call(lambda x: op(x, 1), torch.randn(3, 33, 4))


@pytest.mark.parametrize("op", ACCUMULATIONS)
def test_rows_along_memory_that_fill_no_vectors_are_one_call(fresh, op):
    expect_one_call(lambda x: op(x, 1), torch.randn(40, 13))


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
def test_running_values_of_rows_whose_number_varies_are_stitched(fresh, op):
    compiled = compile_strictly(lambda x: op(x, 1), dynamic=True)
    for rows in (3, 70):
        x = torch.randn(rows, 8, 30)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(x, 1)
        torch.testing.assert_close(compiled(x), op(x, 1), rtol=1e-5, atol=1e-5)
    expect_stitched()


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
def test_running_values_along_rows_whose_length_varies_are_calls(fresh, op):
    compiled = compile_strictly(lambda x: op(x, 1), dynamic=True)
    for length in (5, 9):
        x = torch.randn(6, length, 3)
        assert compiled(x).equal(op(x, 1))
    assert torch_stitch.counters()["library_calls"] == 1


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("dim", [1, -1])
def test_running_sums_of_exponentials_are_as_exact_as_eager(fresh, dtype, dim):
    x = draw(dtype, 5, 13, 29) * 40  # sums of all of a row would lose what comes first
    exact = torch.logcumsumexp(x.double(), dim)
    got = compile_strictly(lambda x: torch.logcumsumexp(x, dim))(x)
    expect_as_exact(got, torch.logcumsumexp(x, dim), exact, x.shape[dim])
    expect_stitched()


@pytest.mark.parametrize("op", [*ACCUMULATIONS, torch.logcumsumexp])
def test_gradients_of_running_values_are_as_exact_as_eager(fresh, op):
    x = torch.rand(9, 8, 20) + 0.5
    fn = lambda x: op(x * 2, 1)  # noqa: E731
    got = run_with_gradients(compile_strictly(fn), x)
    expect_as_exact(got, run_with_gradients(fn, x), run_with_gradients(fn, x.double()), 64)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_searches_among_few_boundaries_find_what_eager_does(fresh, dtype, right):
    x = (torch.randn(6, 50) * 9).to(dtype)
    rows = [(torch.randn(n) * 9).to(dtype).sort()[0] for n in (0, 1, 7, 17, 300)]
    if dtype.is_floating_point:
        x[0], x[1], x[2, ::2] = torch.nan, torch.inf, rows[-1][:25]
    rows[3][5:9] = rows[3][5]
    check(lambda x, *rows: [torch.bucketize(x, row, right=right) for row in rows], x, *rows)


def test_searches_take_rows_of_their_own_sides_and_dtypes(fresh):
    sorted_rows, x = torch.randn(4, 5, 20).sort(-1)[0], torch.randn(4, 5, 9)
    few = sorted_rows[0, 0].double()

    def search(rows, few, x):
        return (
            torch.searchsorted(rows, x, side="right"),
            torch.searchsorted(rows, x, out_int32=True),
            torch.searchsorted(few, x),
            torch.searchsorted(few[:9], x.transpose(0, 1), right=True),
            torch.searchsorted(few, x[0, 0, 0]),
        )

    check(search, sorted_rows, few, x)


def test_searches_for_numbers_whose_count_varies_are_stitched(fresh):
    compiled = compile_strictly(torch.bucketize, dynamic=True)
    for count in (5, 60):
        x, few = torch.randn(count, 3), torch.randn(9).sort()[0]
        torch._dynamo.mark_static(few)
        assert compiled(x, few).equal(torch.bucketize(x, few))
    expect_stitched()


def test_searches_among_many_boundaries_and_by_a_sorter_are_one_call(fresh):
    x, few = torch.randn(40), torch.randn(9)
    expect_one_call(torch.bucketize, x, torch.randn(1000).sort()[0])
    torch_stitch.reset_counters()
    expect_one_call(lambda x, b, s: torch.searchsorted(b, x, sorter=s), x, few, few.argsort())


ORDERS = {
    "sort": lambda x: x.sort(-1),
    "stable": lambda x: x.sort(dim=-1, descending=True, stable=True),
    "argsort": lambda x: x.argsort(dim=0, stable=True),
    "topk": lambda x: x.topk(3, -1),
    "lowest": lambda x: x.topk(2, 0, largest=False),
    "kthvalue": lambda x: x.kthvalue(4),
    "median": lambda x: x.median(-1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_short_rows_are_one_call_between_kernels(fresh, name, dtype):
    def fn(x):
        found = ORDERS[name](x + 1)
        values, *places = found if isinstance(found, tuple) else (found,)
        return values * 2, *(place + 1 for place in places)

    x = torch.stack([torch.randperm(8) for _ in range(5)]).to(dtype)  # no ties: eager may choose
    if dtype.is_floating_point and name in ("sort", "stable", "topk", "median"):
        x[1, 3], x[2, 2], x[3, 1] = torch.nan, torch.inf, -torch.inf
    check(fn, x, copies=1)


@pytest.mark.parametrize("name", ["sort", "topk", "kthvalue", "median"])
def test_gradients_through_orders_of_short_rows(fresh, name):
    def fn(x):
        return ORDERS[name](x.exp())[0].square()

    x = torch.stack([torch.randperm(8) / 4 for _ in range(5)]).requires_grad_()
    mine, eager = (torch.autograd.grad(f(x).sum(), x)[0] for f in (compile_strictly(fn), fn))
    torch.testing.assert_close(mine, eager)
