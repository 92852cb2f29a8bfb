"""Which results share memory with which, and with arguments: as in eager, also once written."""

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc
from torch.utils._pytree import tree_leaves

import torch_stitch
from tests.support.compare import compile_strictly, expect_equal

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import alias_programs  # noqa: E402

# Its AOT tracing returns the base of an argument that is written, where eager returns the argument.
TORCH_LOSES_VIEWS = torch.__version__.startswith(("2.11.", "2.12."))


def expect_same_memory(fn, make, dynamic=False):
    """Values, layouts, shared storages and gradients, before and after each tensor is written."""
    torch._dynamo.reset()
    difference = alias_programs.differ(make, fn, compile_strictly(fn, dynamic=dynamic))
    if difference and TORCH_LOSES_VIEWS:
        torch._dynamo.reset()
        traced = torch.compile(fn, backend="aot_eager", dynamic=dynamic)
        if difference == alias_programs.differ(make, fn, traced):
            pytest.xfail(f"aot_eager does the same: {difference}")
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


# Views that only strides tell: of what the graph made, and of arguments that are written.

VIEWS = {
    "windows": lambda x: x.unfold(-1, 2, 1),
    "diagonal of windows": lambda x: x.unfold(-1, 2, 1).diagonal(),
    "strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "of strided": lambda x: x.as_strided((2, 2), (1, 2), 1).t()[1:],
    "expanded": lambda x: x.unsqueeze(1).expand(-1, 3, -1),
    "window of one": lambda x: x[0].unfold(0, 1, 2).squeeze(),
    "bits": lambda x: x.view(torch.int32),
    "bits of a part": lambda x: x.t()[1:].view(torch.int32),
    "halves": lambda x: x[1:].view(torch.bfloat16)[..., 2:],
    "bytes of windows": lambda x: x.unfold(-1, 2, 1).view(torch.uint8),
    "of twice the size": lambda x: x[::2, :4].view(torch.float64),
    "of twice the size, written": lambda x: x[::2, :4].view(torch.int64).add_(1)[..., 1:],
}


@KINDS
@pytest.mark.parametrize("pair", [list(VIEWS)[i : i + 2] for i in range(len(VIEWS) - 1)])
def test_views_by_strides_share_the_memory_of_what_they_view(pair, trains, dynamic):
    def fn(x):
        y, z = x * 2, torch.zeros_like(x)
        z.add_(y)
        return *(VIEWS[name](y) for name in pair), *(VIEWS[name](z) for name in pair), z

    expect_same_memory(fn, lambda: (whole(3, 5).requires_grad_(trains),), dynamic)


STRIDED = [torch.logaddexp, torch.copysign, torch.logical_or, torch.floor_divide]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("op", STRIDED)
def test_a_view_by_strides_of_permuted_operands_finds_eagers_elements(op, dynamic):
    def fn(x):
        y = op(x[:, None, :, None], x[None, :, None, :])
        return y, y.as_strided((2, 2), (1, 2), 1)

    x = torch.rand(3, 2).t()
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    expect_equal(compile_strictly(fn, dynamic=dynamic)(x), fn(x), rtol=1e-5, atol=1e-6)
    counters = torch_stitch.counters()
    assert (counters["kernels"], counters["library_calls"]) == (1, 0)  # it is stored so


def test_tensors_of_many_dimensions_are_right():
    """Of which a small one would be of 2^40 elements, were it made to ask eager."""
    x = torch.rand(2, *[1] * 36, 3, 2, 2).transpose(0, -1)
    fn = lambda x: torch.logaddexp(x, x.transpose(-1, -3)).softmax(-2)  # noqa: E731
    torch._dynamo.reset()
    expect_equal(compile_strictly(fn)(x[..., :2, :, :]), fn(x[..., :2, :, :]), rtol=1e-5, atol=1e-6)


COMPLEX = {
    "whole": lambda z: (q := z * 2, torch.view_as_real(q)),
    "parts": lambda z: (q := z * 2, q.real, q.imag, torch.view_as_real(q)[..., 1:]),
    "views": lambda z: (q := z * 2, q.t(), q[1:], q.unflatten(0, (1, -1))),
    "of pairs": lambda z: (q := torch.view_as_real(z) + 1, torch.view_as_complex(q), q[1:]),
    "of a transform": lambda z: (q := torch.fft.fft(z), q.imag[:, ::2]),
    "of conjugates": lambda z: (q := z.conj() * 3, q.real.t()),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", COMPLEX)
def test_parts_of_complex_values_share_their_memory(name, dynamic):
    expect_same_memory(COMPLEX[name], lambda: (torch.complex(whole(3, 4), -whole(3, 4)),), dynamic)


def test_a_view_of_a_written_argument_begins_where_eagers_does():
    def fn(x, part):
        x[1:2].mul_(3)
        x[0].add_(x[2])
        return part.as_strided(part.shape, part.stride()), part

    def make(columns):
        x = whole(4, columns)
        return x, x[1:]

    for columns in (5, 3):
        expect_same_memory(fn, lambda columns=columns: make(columns), dynamic=True)


def test_a_view_of_an_argument_by_strides_begins_where_eagers_does():
    def fn(x, y):
        y.movedim(0, -2).where(y.movedim(0, -2) > 0, 0).add_(3)
        return (x.view_as(x).as_strided((2, 2), (1, 2), 1),)

    def make(rows):
        x = whole(rows, 2, 2)
        return x.expand(2, *x.shape), x

    for rows in (7, 5):
        expect_same_memory(fn, lambda rows=rows: make(rows), dynamic=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_part_of_an_argument_without_elements_that_repeats_is_written(dynamic):
    def fn(x):
        x.select(1, 0).mul_(2)
        return (x,)

    expect_same_memory(fn, lambda: (torch.zeros(2, 0, 0).expand(2, 2, 0, 0),), dynamic=dynamic)


def write_rows_twice(x):
    x[:1] += 2
    x[0].add_(-1)


def write_a_row_by_its_window(x):
    first = x[:1] + 2
    x[0] = first[0] - 1


def write_columns_then_the_row(x):
    x[:1][..., 1:] += 2
    x[0].add_(-1)


@pytest.mark.parametrize("sizes", [(2, 0), (2, 3, 0), (2, 0, 3), (2, 3, 2, 0), (2, 3, 0, 2)])
@pytest.mark.parametrize(
    "write", [write_rows_twice, write_a_row_by_its_window, write_columns_then_the_row]
)
def test_parts_of_an_argument_without_elements_are_written(write, sizes):
    def fn(x, y):
        write(x)
        return (x.sum() + y,)

    expect_same_memory(fn, lambda: (torch.zeros(sizes), whole(3)))


def test_a_part_by_strides_of_an_argument_with_a_gradient_is_written():
    """torch's own kernel takes no operand that requires one and is not contiguous."""

    def fn(x):
        x.as_strided((2,), (1,)).add_(1)
        return (x * 2,)

    def make():
        return ((whole(3, 2).requires_grad_() * 1).t(),)

    expect_same_memory(fn, make)


def test_a_part_put_by_strides_into_a_broadcast_value_is_put_once():
    def fn(x):
        y = (x + 1).expand(2, *x.shape)
        row = y.select(-2, 2)
        return y.as_strided_scatter(row, row.shape, (1,) * row.dim()), y

    expect_same_memory(fn, lambda: (whole(7, 3),))


RELAID = {
    "repeat": lambda x, i: (x.repeat(1, 1), x.tile(1, 2)),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]) * x,
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]) + x.index_fill(0, i, 2),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 5.0) + x.index_put((i,), x[0]),
}


@pytest.mark.parametrize("name", RELAID)
def test_what_eager_makes_contiguous_of_a_transpose_is(name):
    i = torch.tensor([2, 0])

    def make():
        return whole(3, 5).t(), whole(3, 5, 2).permute(2, 0, 1)[0]

    def fn(*xs):
        return tuple(y for x in xs for y in tree_leaves(RELAID[name](x, i)))

    expect_same_memory(fn, make)


# Ops that count from the start of a storage, or look at it.


def put_first(x):
    return x.as_strided_scatter(x.select(0, 0) * 2, [], [])

FROM_START = {
    "scatter": lambda x: torch.as_strided_scatter(torch.zeros(6), x * 2, x.shape, [2, 1], 0),
    "scatter into a result": lambda x: torch.as_strided_scatter(x + 1, x[0] * 2, [2], [2], 1),
    "of a result": lambda x: torch.as_strided(x * 2, [2, 2], [1, 2], 1),
    "of a view": lambda x: torch.as_strided((x * 2)[1:], [2], [1], 0),
    "of a view that moves": lambda x: (x * 2).t()[1:].as_strided([2, 2], [1, 1], 2),
    "of a view, from where it is": lambda x: (x * 2)[1:].as_strided([2], [1]),
    "of a part": lambda x: (x * 2).split(1)[1].as_strided([3], [1], 1),
    "of what a part is put into": lambda x: put_first(x.reshape(-1)[1:]).as_strided([2], [1]),
    "of a view of it": lambda x: put_first(x.reshape(-1)[1:]).view(-1)[2:].as_strided([2], [1]),
    "copied": lambda x: torch.as_strided_copy(x * 2, [2], [2], 1),
    "copied from a view": lambda x: torch.as_strided_copy((x * 2)[1:], [2], [2], 1),
    "copied, from where it is": lambda x: torch.as_strided_copy((x * 2)[1:], [2], [1]),
    "scatter into a view": lambda x: torch.as_strided_scatter((x + 1)[1:], x[0] * 2, [2], [1], 2),
    "scatter where it is": lambda x: torch.as_strided_scatter((x + 1)[1:], x[0] * 2, [2], [1]),
    "of a column": lambda x: (x * 2)[:, 1].as_strided([2], [2], 0),
    "of a call's result": lambda x: (x @ x.t()).t().as_strided([2], [2], 1),
    "of a sorted value": lambda x: x.sort(0).values[1:].as_strided([2], [1], 1),
    "of a sum": lambda x: (x * 2).sum(1).as_strided([1], [1], 2) + x.amax(),
    "of two in one slab": lambda x: ((x + 1).sort(1).values * 2).as_strided([2], [1], 1) * x.sum(),
}


LAYOUTS = {"rows": lambda: whole(3, 2), "columns": lambda: whole(2, 3).t().detach()}


@KINDS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_counts_from_the_start_of_a_storage_finds_eagers(layout, trains, dynamic):
    def fn(x):  # as_strided_scatter has gradients of contiguous values only
        trained = not (trains and layout == "columns")
        return tuple(y(x) * 1 for name, y in FROM_START.items() if trained or "scatter" not in name)

    expect_same_memory(fn, lambda: (LAYOUTS[layout]().requires_grad_(trains),), dynamic)


def test_an_argument_is_counted_from_the_start_of_its_own_storage():
    compiled = compile_strictly(lambda x: x.as_strided([2], [1], 0) + 1)
    memory = whole(12)
    for start in (0, 2, 5):
        expect_equal(compiled(memory[start:][:4]), memory[:2] + 1)


@torch.library.custom_op("test_aliases::look", mutates_args=())
def look(x: torch.Tensor) -> torch.Tensor:
    """Where the tensor begins, what its storage holds, and its second element, by as_strided."""
    size = x.untyped_storage().nbytes() // x.element_size()
    found = [x.storage_offset(), size, x.as_strided((), (), x.storage_offset() + 1).item()]
    return torch.tensor(found)


@look.register_fake
def _(x):
    return torch.empty(3)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_custom_op_sees_the_storage_that_eager_shows_it(turned, dynamic):
    def fn(x, y):
        made = (x * 2, x + y, x.sum(0) - 1, (x * 3).cumsum(1))
        views = made[0][1:], made[1].t()[1:], made[1].split(2)[1], made[3][:, 1:].t(), made[2][::2]
        parts = made[0].as_strided((2, 2), (1, 1), 1), made[3].view(torch.int32)[1:].float()
        put = put_first(y.view(-1))
        return *map(look, (*made, *views, *parts, put, put[2:])), look(x), look(y[1])

    x, memory = whole(5, 3).t() if turned else whole(3, 5), whole(20)
    inputs = x, memory[5:].view(3, 5)
    expect_equal(compile_strictly(fn, dynamic=dynamic)(*inputs), fn(*inputs))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_what_begins_behind_the_start_of_its_storage(dynamic):
    def fn(x):
        put = put_first(x[1:])
        return put[2:], torch.view_as_real(put), put.view(2, 3).t(), torch.view_as_real(put)[1] * 2

    expect_same_memory(fn, lambda: (whole(7) * (1 + 2j),), dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_write_through_a_view_of_an_argument(dynamic):
    def fn(x, y, z):
        y.mul_(2)
        z.add_(1)
        x[1:] += 3
        return x.sum(), y * 2, z + 1

    def make(rows):
        x = whole(rows, 3)
        return x, x.t(), x[2:]

    for rows in (4, 2):  # with 2, a size of its own that tracing finds to be a number
        expect_same_memory(fn, lambda rows=rows: make(rows), dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_write_after_a_transpose_in_place_with_both_views_returned(dynamic):
    def fn(x):
        y = x * 2
        z = y.view(-1)
        y.t_()
        y.add_(1)
        y[0] = 7
        return y, z, y.t(), x

    expect_same_memory(fn, lambda: (whole(4, 3),), dynamic)


# What is done to a value, a view of it that is an argument too, and a weight; the view.
WRITTEN = {
    "the view": (lambda x, y, w: (y.mul_(w[0]), x.square(), y * 2), lambda x: x[1:]),
    "the base": (lambda x, y, w: (x.mul_(w[0]), y.square(), y * w[1]), lambda x: x[1:]),
    "twice": (lambda x, y, w: (y.mul_(w[1]), y.add_(w[0]), x * w[0]), lambda x: x[:2]),
    "a diagonal": (lambda x, y, w: (y.mul_(w[1]), x + 1), lambda x: x.diagonal()),
    "what is saved": (lambda x, y, w: (y.relu_(), x * x, y * w[0]), lambda x: x[:2]),
    "a copy": (lambda x, y, w: (y.copy_(w[2:4]), x.square(), y * w[2]), lambda x: x[:2]),
    "a part": (lambda x, y, w: (y[:, 1:].mul_(w[:3, 1:]), x * x)[1:], lambda x: x[:3]),
    "a column": (lambda x, y, w: (y[0].zero_(), x * w[0])[1:], lambda x: x.t()),
    "a mask": (lambda x, y, w: (y.masked_fill_(w[0] > 0, 2), x * w[0]), lambda x: x[3:]),
    "indices": (
        lambda x, y, w: (y.index_add_(0, torch.tensor([1, 0, 1]), w[:3]), x * x),
        lambda x: x[1:],
    ),
    "strides": (lambda x, y, w: (y.mul_(w[:2, :2]), x.square()), lambda x: x[:4:2, ::2]),
}


# Torch refuses two more for every backend: both are written, or the value needs no gradient.
@pytest.mark.parametrize("number, name", list(enumerate(WRITTEN)))
def test_gradients_where_an_argument_views_another_and_one_is_written(number, name):
    fn, view = WRITTEN[name]

    def make():
        x = whole(5, 4).requires_grad_() * 1  # a leaf is not written in place
        return x, view(x), (whole(4, 4) / 4).requires_grad_()

    expect_same_memory(fn, make, dynamic=number % 2 == 1)


@needs_nvrtc
@pytest.mark.parametrize("target", ["cpu", "h200"])
def test_what_reads_a_cat_waits_for_all_that_wrote_its_parts(target):
    def fn(x):
        y = x.softmax(2)
        whole = torch.cat((y, y * 0.5), 1)
        return whole.flip(1), torch.stack((y, y.exp()), 1).amax(1)

    options = {"strict": True, "target": target} | ({"simulate": True} if target == "h200" else {})
    x = torch.randn(3, 20, 50)
    result = torch.compile(fn, backend="stitch", options=options)(x)
    expect_equal(result, fn(x), rtol=1e-6, atol=1e-7)
