"""Transposes, alone and before reductions: loads through tiles, on CPUs and as a GPU's kernels."""

import pytest
import torch

import torch_stitch
from benchmarks.accuracy import judge_tensor

WHERE = [pytest.param(None, id="cpu"), pytest.param(None, id="ptxsim", marks=pytest.mark.simulated)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.parametrize("where", WHERE)]


def make(shape, dtype=torch.float32):
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        return torch.randint(0, 100, shape, dtype=dtype)
    return torch.randn(shape).to(dtype)


def check(fn, *inputs, terms=1, dynamic=False):
    """As near to fp64 as eager is, in one kernel; strides are eager's."""
    compiled = torch.compile(
        fn, backend="stitch", fullgraph=True, dynamic=dynamic, options={"strict": True}
    )
    got, eager = compiled(*inputs), fn(*inputs)
    exact = fn(*(x.double() if x.dtype.is_floating_point else x for x in inputs))
    assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
    if eager.dtype.is_floating_point:
        verdict = judge_tensor(got, eager, exact, terms)
        assert verdict["ok"], verdict
    else:
        assert torch.equal(got, eager)
    counters = torch_stitch.counters()
    assert counters["library_calls"] == counters["fallback_ops"] == 0, counters
    return compiled


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(131, 67), (16, 300), (8, 8)], ids=str)
def test_copies_of_matrices(where, shape, dtype):
    check(lambda x: x.t().contiguous(), make(shape, dtype))


@pytest.mark.parametrize("shape", [(1, 67), (67, 1), (0, 67), (67, 0), (9, 7), (1, 1)], ids=str)
def test_one_row_and_none(where, shape):
    def fn(x):
        return x.t().contiguous() + 1

    x = make(shape)
    compiled = torch.compile(fn, backend="stitch", options={"strict": True})
    assert torch.equal(compiled(x), fn(x))


@pytest.mark.parametrize(
    "shape, order",
    [
        ((3, 37, 41), (0, 2, 1)), ((19, 5, 23), (2, 1, 0)), ((2, 3, 17, 29), (0, 2, 3, 1)),
        ((2, 17, 13, 3), (0, 3, 1, 2)), ((5, 11, 3, 31), (3, 1, 0, 2)),
        ((2, 3, 9, 5, 13), (4, 2, 0, 3, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_permutations_beside_what_is_contiguous(where, shape, order):
    x = make(shape)
    check(lambda x, y: x.permute(order).contiguous() * 2 + y, x, make(x.permute(order).shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_reductions_of_transposed_rows(where, dtype):
    def fn(x):
        return torch.softmax(x.transpose(1, 2).contiguous(), -1) * 2

    check(fn, make((2, 71, 37), dtype), terms=71)


def test_a_norm_over_the_dimension_in_the_middle(where):
    def fn(x):
        t = x.permute(0, 2, 1)
        return torch.nn.functional.layer_norm(t, (t.shape[-1],)).permute(0, 2, 1)

    check(fn, make((2, 131, 37)), terms=131)


def test_a_sum_of_a_product_of_both_orders(where):
    check(lambda x, y: (x.t() * y).sum(1), make((97, 43)), make((43, 97)), terms=97)


def test_sums_over_another_axis(where):
    def fn(x, y):
        return (x.transpose(1, 2) * y).sum(0)

    check(fn, make((7, 33, 45)), make((7, 45, 33)), terms=7)


def test_one_matrix_read_both_ways(where):
    check(lambda x: torch.sigmoid(x + x.t()), make((73, 73)))


def test_several_transposed_loads_of_several_types(where):
    def fn(x, y, z):
        return x.t() + y.t() * z

    check(fn, make((61, 47)), make((61, 47), torch.bfloat16), make((47, 61)))


@pytest.mark.parametrize(
    "part", ["rows", "columns", "unaligned", "every_second", "every_third", "every_fourth"]
)
def test_parts_of_larger_matrices(where, part):
    x = make((90, 101))
    view = {
        "rows": x[3:70], "columns": x[:, 4:80], "unaligned": x[1:, 1:], "every_second": x[:, ::2],
        "every_third": x[:, 2::3], "every_fourth": x[3:, 1::4],
    }[part]  # fmt: skip
    check(lambda x: x.t().contiguous() + 1, view)


def test_not_a_number_stays_where_it_is(where):
    x = make((40, 33))
    x[::7, ::5] = float("nan")
    x[1, 2], x[2, 1] = float("inf"), -0.0
    got = torch.compile(lambda x: x.t().contiguous(), backend="stitch")(x)
    assert torch.equal(got.view(torch.int32), x.t().contiguous().view(torch.int32))


def test_sizes_known_at_run_time(where):
    def fn(x, y):
        return x.t().contiguous() + y

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend="stitch", dynamic=True, options={"strict": True})
    for shape in [(67, 131), (16, 300), (130, 9), (257, 129)]:
        x, y = make(shape), make(shape[::-1])
        assert torch.equal(compiled(x, y), fn(x, y))


def test_an_argument_stored_transposed_into_itself(where):
    x, y = make((45, 45)), make((45, 45))
    wanted = x.t() + y

    def fn(x, y):
        x.copy_(x.t() + y)

    torch.compile(fn, backend="stitch", options={"strict": True})(x, y)
    assert torch.equal(x, wanted)


def test_a_transposed_value_added_in_place(where):
    x, y = make((45, 67)), make((67, 45))
    wanted = x + y.t()

    def fn(x, y):
        x.add_(y.t())

    torch.compile(fn, backend="stitch", options={"strict": True})(x, y)
    assert torch.equal(x, wanted)
