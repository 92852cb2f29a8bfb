"""Bad inputs B17 to B32: extents, layouts, indices, mutations and aliases; results are eager's."""

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from tests.support.compare import check, compile_strictly, expect_equal

pytestmark = pytest.mark.usefixtures("fresh")

MOST_BLOCKS = 2**31 - 1  # of a launch


@pytest.fixture(params=["cpu", "ptxsim"])
def place(request, monkeypatch):
    """Where the kernels of a test run."""
    if request.param == "ptxsim":
        monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")
    return request.param


def whole_numbers(*shape):
    """Floats whose sums are exact in any order."""
    return torch.randint(-8, 8, shape).float()


def launched(fn, *inputs):
    """(blocks, threads a block) of the kernels that an H200 would run."""
    plan = torch_stitch.explain(fn, *inputs, target="h200").plan
    assert not plan["library_calls"]
    return [(kernel["grid"], kernel["block"]) for kernel in plan["kernels"]]


@pytest.mark.parametrize("extent", [2**30 - 3, 2**30 + 3, 2**31 + 1, 2**32 + 5])
def test_b17_extents_beyond_31_bits_are_planned_as_others(extent):
    x = torch.empty(1, dtype=torch.int8).expand(extent)
    for blocks, threads in launched(lambda x: x.neg().sum(dtype=torch.int32), x):
        assert 0 < blocks <= MOST_BLOCKS and threads >= 128


@pytest.mark.parametrize("shape", [(70_000, 3), (3, 70_000, 2), (2, 3, 70_000), (65_537, 1, 5)])
def test_b18_more_rows_than_a_grid_has_in_y_or_z(shape):
    x = torch.randn(shape)
    check(lambda x: (x * 2 + 1, x.amax(-1)), x)
    assert all(0 < blocks <= MOST_BLOCKS for blocks, _ in launched(lambda x: x.amax(-1), x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.float64])
@pytest.mark.parametrize("offset", [1, 2, 3, 7])
def test_b19_views_whose_first_element_is_not_aligned(place, dtype, offset):
    base = torch.arange(4 * 64 + 16).remainder(100).to(dtype)
    x = base[offset : offset + 256].view(4, 64)
    odd = base[:260].view(4, 65)[:, 1:]
    check(lambda x, odd: (x + odd, x.amax(1), odd * 2, x[:, 1:] + odd[:, :-1]), x, odd)


def test_b19_a_base_of_another_dtype(place):
    x = torch.arange(67, dtype=torch.int16).view(torch.uint8)[1:129].view(2, 64)
    check(lambda x: (x + 1, x.amax(1)), x)


def test_b20_expanded_inputs_and_a_refused_write_to_one(place):
    row, whole = whole_numbers(1, 33).expand(9, 33), whole_numbers(9, 33)
    check(lambda x, y: (x + y, x.sum(0), (x * y).amax(1), y.add_(x).sum()), row, whole, copies=1)
    check(lambda x: x.add(1).sum(), whole_numbers(1).expand(70, 3, 5), copies=1)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.compile(lambda x: x.add_(1), backend="stitch")(row)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4), ()])
def test_b21_nothing_in_a_dimension_and_no_dimensions(place, shape):
    x = torch.randn(shape)
    check(lambda x: (x + 1, x.sum(), x.sum(-1), x.mean(), (x > 0).any(), x.abs().reshape(-1)), x)


def test_b21_dimensions_of_one_with_strides_of_any_size(place):
    x = whole_numbers(40).as_strided((1, 5, 1, 8), (977, 8, 3, 1))
    check(lambda x: (x * 2, x.amax(-1), x.sum(1)), x, all_strides=False)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1::3],
        lambda x: x.flip(0, 1)[1:],
        lambda x: x.view(4, 3, 2, 9).permute(2, 0, 3, 1),
        lambda x: x.as_strided((10, 10), (7, 3), 2),
        lambda x: x.unfold(1, 4, 2),
        lambda x: x.diagonal(),
        lambda x: x.view(3, 4, 3, 6).to(memory_format=torch.channels_last),
    ],
)
def test_b22_layouts_of_inputs(place, view):
    x = view(whole_numbers(12, 18))
    check(lambda x: (x + 1, x.amax(-1), x.neg().flip(0), x - x.amax(0)), x, all_strides=False)


def test_b23_outputs_have_eagers_strides_and_storages(place):
    def fn(x):
        y = x + 1
        return y, y.t(), y[1], x.t(), y.t().contiguous(), (x * 2).permute(1, 0)

    x = torch.randn(5, 7)
    got, expected = compile_strictly(fn)(x), fn(x)
    expect_equal(got, expected)
    storages = [t.untyped_storage().data_ptr() for t in (x, *got)]
    assert storages[1] == storages[2] == storages[3] and storages[4] == storages[0]
    assert len({storages[0], storages[1], storages[5], storages[6]}) == 4


def test_b24_indices_from_the_end_and_out_of_range(place):
    table = torch.randn(10, 5)
    check(lambda t, i: (t[i], t[:, i.clamp(-5, 4)]), table, torch.tensor([-1, 0, 9, -10, 3]))
    if place == "cpu":
        for wrong in (10, -11):
            with pytest.raises(IndexError):
                compile_strictly(lambda t, i: t[i] + 1)(table, torch.tensor([0, wrong]))


def test_b25_bytes_that_are_no_booleans_and_lazy_views_of_complex_numbers():
    bytes_ = torch.tensor([0, 1, 2, 255, 128], dtype=torch.uint8)

    def fn(b, x):
        return b.logical_not(), torch.where(b, x, -x), b.to(torch.int32), (b & (x > 0)).sum()

    x = torch.randn(5)
    got = compile_strictly(fn)(bytes_.view(torch.bool), x)
    expected = fn(bytes_.bool(), x)
    assert got[0].equal(expected[0]) and got[1].equal(expected[1]) and got[3].equal(expected[3])
    z = torch.randn(4, 3, dtype=torch.complex64)
    for lazy in (z.conj(), z.mH, z.conj().imag, torch.view_as_real(z)):
        fn = torch.compile(lambda z: (z * 2 + 1, z.abs().sum()), backend="stitch")
        torch.testing.assert_close(fn(lazy), (lazy * 2 + 1, lazy.abs().sum()))


@pytest.mark.parametrize("columns", [1, 3, 7, 9, 33])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int8])
def test_b26_rows_that_are_no_multiple_of_16_bytes(place, columns, dtype):
    x = torch.randint(-9, 9, (65, columns)).to(dtype)
    check(lambda x: (x * 2 + 1, x.amax(1), x.amax(0), x.t() + 1), x, all_strides=False)


def test_b27_a_read_after_a_later_write(place):
    def fn(x):
        before = x * 2
        x.add_(1)
        after = x * 3
        x.mul_(-1)
        return before, after, x + 0

    check(fn, torch.randn(6, 35), copies=1)


def test_b28_a_write_that_reads_other_places(place):
    def shift(x):
        x[1:] += x[:-1].clone()
        x.copy_(x.flip(0) + x.t())
        return x.sum(0)

    check(shift, whole_numbers(33, 33), copies=2)


def test_b29_a_write_through_what_returned_its_argument(place):
    def fn(x):
        y = F.dropout(x, 0.5, training=False)
        y.add_(1)
        z = x.contiguous()
        z.mul_(2)
        return x * 1

    check(fn, torch.randn(5, 33), copies=1)


def test_b30_results_that_must_not_share_memory_with_arguments(place):
    def fn(x):
        return x.clone(), x + 0, x.reshape(-1).clone(), x.to(torch.float32, copy=True), x * 1

    x = torch.randn(5, 33)
    kept = x.clone()
    for result in compile_strictly(fn)(x):
        result.fill_(7)
    assert x.equal(kept)


def test_b31_a_buffer_written_often_while_it_is_read(place):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(7))

        def forward(self, x):
            self.count += x.sum(0)
            y = x * self.count
            self.count.mul_(0.5)
            return y + self.count

    mine, theirs = Counter(), Counter()
    compiled = compile_strictly(mine)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randint(-4, 4, (9, 7)).float()
            assert compiled(x).equal(theirs(x)) and mine.count.equal(theirs.count)


@pytest.mark.parametrize("overlap", ["same", "partly", "apart"])
def test_b32_arguments_that_share_memory(place, overlap):
    def fn(a, b):
        a.mul_(2)
        b.add_(a.sum())
        return a + b, a

    def arguments():
        base = torch.arange(48.0)
        b = {"same": slice(0, 20), "partly": slice(10, 30), "apart": slice(24, 44)}[overlap]
        return base, base[:20], base[b]

    mine, theirs = arguments(), arguments()
    with torch.no_grad():
        got, expected = torch.compile(fn, backend="stitch")(*mine[1:]), fn(*theirs[1:])
    expect_equal((got, mine[0]), (expected, theirs[0]))
    assert got[1].data_ptr() == mine[1].data_ptr()
