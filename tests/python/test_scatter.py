"""Ops that write at indices: parts written where the rest is, rows that combine what comes to them,
by segments of a sorted index or in chunks of the positions."""

import json
import os

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from benchmarks.accuracy import judge_tensor
from tests.support.compare import compile_strictly

aten = torch.ops.aten
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    torch.manual_seed(0)


def copies(inputs):
    return [x.clone() for x in inputs]


def expect_same(got, eager, exact, terms):
    assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
    if got.is_floating_point():
        verdict = judge_tensor(got, eager, exact, terms)
        assert verdict["ok"], verdict
    else:
        assert got.equal(eager)


def widen(x):
    return x.double() if x.is_floating_point() else x


def is_for_gpu():
    is_simulated = os.environ.get("TORCH_STITCH_SIMULATE") == "true"
    return is_simulated or torch.get_default_device().type == "cuda"


def expect_calls(calls):
    """Library calls beside the kernels of a CPU; on a GPU one more for each index, two at most."""
    counters = torch_stitch.counters()
    most = calls + 2 if is_for_gpu() else calls
    assert counters["fallback_ops"] == 0, counters
    assert calls <= counters["library_calls"] <= most, counters


def check(fn, *inputs, calls=0, terms=64, dynamic=None, compiled=None):
    """Results and arguments as eager leaves them; `calls`: as expect_calls."""
    compiled = compiled or compile_strictly(fn, dynamic=dynamic)
    ours, theirs, exact = copies(inputs), copies(inputs), [widen(x) for x in copies(inputs)]
    results = []
    with torch.no_grad():
        for run, given in ((compiled, ours), (fn, theirs), (fn, exact)):
            result = run(*given)
            result = result if isinstance(result, tuple) else () if result is None else (result,)
            results.append([*result, *given])
    for row in zip(*results, strict=True):
        expect_same(*row, terms)
    expect_calls(calls)
    return compiled


def plan_of(fn, *inputs):
    with torch.no_grad():
        return json.loads(torch_stitch.explain(fn, *inputs).to_json())


def some(shape, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float64).to(dtype)
    return torch.randint(-9, 9, shape, dtype=dtype)


# Parts written where the rest is.


def one_row(cache, place, row):
    cache.index_copy_(1, place, row)


def one_row_added(cache, place, row):
    cache[:, place] += row


def one_row_then_read(cache, place, row):
    cache.index_copy_(1, place, row)
    return cache.sum(-1)


def one_row_then_multiplied(cache, place, row):
    cache.index_copy_(1, place, row)
    return (cache @ row.mT).relu()


def one_row_returned(cache, place, row):
    cache[:, place] = row * 2
    return cache


def part_of_a_row(cache, place, row):
    cache[:, place, 1:4] = row[..., 1:4] * 2


def every_other(cache, place, row):
    cache[:, ::2] = row.exp()


def a_corner(cache, place, row):
    cache[1:, 2:5, -1] = row[1:, :, 0] + 1


def more_than_it_stores(cache, place, row):
    cache[:, 1:3] = cache[:, 2:4] + row


def two_parts(cache, place, row):
    cache[:, 1:3, 2:4] = row[..., 2:4]
    cache[:, 1:3, 5] = row[..., 5] * 2


def rows_of_two(cache, place, row):
    cache[:, 0] += row[:, 0]
    return cache[:, 0] * 2


WRITES = (
    one_row,
    one_row_added,
    one_row_then_read,
    one_row_then_multiplied,
    one_row_returned,
    part_of_a_row,
    every_other,
    a_corner,
    more_than_it_stores,
    two_parts,
    rows_of_two,
)
# What lies apart is copied back, as what is read is not what is stored; the product.
CALLS = {(more_than_it_stores, True): 1}
CALLS |= {(one_row_then_multiplied, strided): 1 for strided in (False, True)}


@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
@pytest.mark.parametrize("fn", WRITES, ids=lambda fn: fn.__name__)
def test_parts_are_written(fn, strided):
    cache = some((7, 3, 11)).transpose(0, 1) if strided else some((3, 7, 11))
    check(fn, cache, torch.tensor([5]), some((3, 1, 11)), calls=CALLS.get((fn, strided), 0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_parts_of_any_dtype(dtype):
    cache, row = (some(shape).to(dtype) for shape in ((3, 7, 11), (3, 1, 11)))
    check(one_row, cache, torch.tensor([6]), row)
    check(part_of_a_row if dtype != torch.bool else every_other, cache, torch.tensor([-1]), row)


@pytest.mark.parametrize("fn", [one_row, one_row_added, part_of_a_row], ids=lambda fn: fn.__name__)
def test_only_the_part_is_touched(fn):
    cache, row = some((3, 700, 11)), some((3, 1, 11))
    plan = plan_of(fn, cache, torch.tensor([5]), row)
    (kernel,) = plan["kernels"]
    assert kernel["bytes_written"] <= 4 * row.numel(), kernel
    assert plan["library_calls"] == []


def test_a_step_of_a_decoder_with_any_place():
    compiled = None
    for place in (0, 3, 6):
        inputs = some((2, 7, 8)), torch.tensor([place]), some((2, 1, 8))
        compiled = check(one_row_then_read, *inputs, compiled=compiled)


def test_slices_at_places_of_the_graph():
    def fn(cache, row, start):
        cache[:, start : start + 2] = row

    cache, row = some((3, 70, 11)), some((3, 2, 11))
    compiled = compile_strictly(fn, dynamic=True)
    for start in (0, 5, 68):
        expected, got = cache.clone(), cache.clone()
        fn(expected, row, start)
        compiled(got, row, start)
        assert got.equal(expected)


# Rows that combine what comes to them: a few in chunks of the positions, many by segments, which
# one library call sorts.


def added(x, index, source):
    return x.index_add(0, index, source * 2) + 1


def added_to_columns(x, index, source):
    return x.mT.contiguous().index_add(1, index, source.mT, alpha=-2)


def scattered(x, index, source):
    return x.scatter_add(0, index[:, None].expand_as(source), source)


def largest(x, index, source):
    index = index[:, None].expand_as(source)
    return x.scatter_reduce(0, index, source, "amax"), x.scatter_reduce(0, index, source, "amin")


def accumulated(x, index, source):
    return aten.index_put(x, [index], source, True), aten.index_put(x, [index - 37], source, True)


def averaged(x, index, source):
    index, x, source = index[:, None].expand_as(source), x.float(), source.float()
    return tuple(x.scatter_reduce(0, index, source, "mean", include_self=s) for s in (True, False))


def only_what_comes(x, index, source):
    first = x.index_reduce(0, index, source, "amax", include_self=False)
    return first, x.index_reduce(0, index, source.clamp(-1, 1), "prod", include_self=False)


SUMS = (added, added_to_columns, scattered, largest, accumulated, averaged, only_what_comes)
ROWS, MANY, COUNT = 37, 3701, 301
NARROW = 12  # bytes of a row that hosts combine sooner than they sort few positions
BOTH = pytest.mark.parametrize("rows", [ROWS, MANY])


def order_of(kind, rows=ROWS):
    index = torch.randint(rows, (COUNT,))
    index[10:50] = index[:40] = index[100:140]
    return {
        "mixed": index,
        "sorted": index.sort()[0],
        "one row": torch.full((COUNT,), 5),
        "few": index[:2],
        "last": torch.tensor([rows - 1]),
    }[kind]


@BOTH
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int16, torch.int8], ids=str)
@pytest.mark.parametrize("fn", SUMS, ids=lambda fn: fn.__name__)
def test_rows_combine_what_comes_to_them(fn, dtype, rows):
    index = order_of("mixed", rows)
    calls = 0 if rows == ROWS else 2 if fn is accumulated else 1
    x, source = some((rows, 13), dtype), some((COUNT, 13), dtype)
    check(fn, x, index, source, calls=calls)


@BOTH
@pytest.mark.parametrize("kind", ["sorted", "one row", "few", "last"])
def test_rows_of_any_order(kind, rows):
    index = order_of(kind, rows)
    calls = int(rows == MANY and kind != "last")
    check(scattered, some((rows, 13)), index, some((len(index), 13)), calls=calls, terms=COUNT)


def test_sums_of_segments_have_the_order_of_eager():
    x, index, source = some((MANY, 13)), order_of("mixed", MANY), some((COUNT, 13))
    expected = x.clone()
    for i, row in zip(index.tolist(), source):
        expected[i] += row
    assert compile_strictly(scattered)(x, index, source).equal(expected)


@BOTH
def test_not_a_number_stays_in_its_row(rows):
    x, index, source = some((rows, 13)), order_of("mixed", rows), some((COUNT, 13))
    source[7], source[9] = float("nan"), float("inf")
    calls = int(rows == MANY)
    check(lambda *inputs: (scattered(*inputs), *largest(*inputs)), x, index, source, calls=calls)


def last_of(x, index, source):
    expected = x.clone()
    for place, row in zip(index.flatten().tolist(), source.flatten(0, index.dim() - 1)):
        expected[place] = row
    return expected


@pytest.mark.parametrize("shape", [(301,), (43, 7)], ids=str)
@pytest.mark.parametrize("index_type", [torch.int64, torch.int32], ids=str)
def test_the_last_of_several_writes_wins(shape, index_type):
    def fn(x, index, source):
        return aten.index_put(x, [index], source)

    x, source = some((ROWS, 5)), some((*shape, 5))
    index = torch.randint(-ROWS, ROWS, shape, dtype=index_type)
    assert compile_strictly(fn)(x, index, source).equal(last_of(x, index, source))


def test_scatter_with_a_place_for_each_row():
    def fn(x, index, source):
        kept = x.scatter(1, index, source), x.scatter(1, index, 2.5)
        return *kept, x.scatter_add(1, index, source) * 2

    check(fn, some((ROWS, 13)), torch.randint(13, (ROWS, 1)), some((ROWS, 1)))


def test_scatter_with_a_place_for_each_element():
    def fn(x, index, source):
        return x.scatter_add(1, index, source), x.scatter_reduce(0, index, source, "prod")

    check(fn, some((13, 13)), torch.randint(13, (11, 12)), some((13, 14)), dynamic=False)
    inputs = some((23, 13)), torch.randint(13, (7, 12)), some((13, 14))
    torch_stitch.reset_counters()
    check(fn, *inputs, dynamic=False)
    torch_stitch.reset_counters()
    # Rows that are known at run time only are sorted for.
    check(fn, *inputs, dynamic=True, calls=2)


def test_a_scatter_into_much_more_than_it_writes_is_one_call():
    def fn(x, index, source):
        return x.scatter_add(0, index, source) + 1

    check(fn, some((1000, 3)), torch.randint(1000, (2, 3)), some((2, 3)), calls=1)


def test_a_large_argument_is_written_where_it_is():
    def fn(x, index, source):
        x.index_add_(0, index, source)

    x, index, source = some((1000, 3)), torch.tensor([5, 5, 7]), some((3, 3))
    (call,) = plan_of(fn, x, index, source)["library_calls"]
    assert call["name"] == "aten.index_add_.default"
    torch_stitch.reset_counters()
    check(fn, x, index, source, calls=1)


@BOTH
def test_indices_that_are_shared_are_sorted_once(rows):
    def fn(scores, index):
        wide, shape = index[:, None].expand_as(scores), (rows, 13)
        most = scores.new_full(shape, -torch.inf).scatter_reduce(0, wide, scores, "amax")
        e = (scores - most[index]).exp()
        return e / scores.new_zeros(shape).scatter_add(0, wide, e)[index]

    how = {"calls": int(rows == MANY), "terms": COUNT}
    compiled = check(fn, some((COUNT, 13)), order_of("mixed", rows), **how)
    check(fn, some((COUNT, 13)), order_of("sorted", rows), compiled=compiled, **how)


@pytest.mark.parametrize("rows", [50, MANY])
@pytest.mark.parametrize("padding", [None, 3, 0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients_of_embeddings(dtype, padding, rows):
    def fn(weight, tokens):
        return F.embedding(tokens, weight, padding).float().square().sum()

    weight, tokens = some((rows, 33), dtype), torch.randint(rows, (7, 43))
    tokens[2], tokens[3, :9] = tokens[1], 3
    wide = weight.double().requires_grad_()
    fn(wide, tokens).backward()
    grads = []
    for run in (compile_strictly(fn), fn):
        leaf = weight.clone().requires_grad_()
        run(leaf, tokens).backward()
        grads.append(leaf.grad)
    expect_same(*grads, wide.grad, 301)
    expect_calls(int(rows == MANY))


def test_gradients_of_gathers():
    def fn(x, index, rows):
        return (x.gather(1, index) * x[rows]).sum() + x.index_select(1, rows).exp().sum()

    index, rows = torch.randint(ROWS, (13, ROWS)), torch.randint(ROWS, (13,))
    results = []
    for run, dtype in ((compile_strictly(fn), None), (fn, None), (fn, torch.float64)):
        x = torch.linspace(-1, 1, ROWS * ROWS).reshape(ROWS, ROWS).to(dtype or torch.float32)
        x.requires_grad_()
        run(x, index, rows).backward()
        results.append(x.grad)
    expect_same(*results, 13 * 13)


def test_any_number_of_rows():
    compiled = compile_strictly(scattered, dynamic=True)
    for rows, count, width in ((37, 301, 13), (5, 17, 3), (64, 1000, 8)):
        x, index, source = some((rows, width)), torch.randint(rows, (count,)), some((count, width))
        check(scattered, x, index, source, compiled=compiled, calls=1)


def segments(index, rows, narrow=True, wraps=False, ignored=-1):
    return torch.ops.torch_stitch.segments([index], narrow, [rows, wraps, ignored])


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("rows", [2**18 - 1, 2**18, 2**18 + 1, 5_000_011])
def test_many_rows_are_sorted_in_parts(rows, narrow):
    count, ignored = 300_007, rows + 7
    index = torch.randint(-1, min(rows, 400_000), (count,))
    index[::1000] = rows - 1
    given = torch.where(index < 0, ignored, index)
    order, offsets = segments(given, rows, narrow, ignored=ignored)
    assert order.dtype == offsets.dtype == (torch.int32 if narrow else torch.int64)
    kept = int((index >= 0).sum())
    met = torch.where(index < 0, rows, index)
    torch.testing.assert_close(order[:kept].long(), met.sort(stable=True).indices[:kept])
    counted = torch.bincount(met, minlength=rows + 1)[:rows].cumsum(0)
    torch.testing.assert_close(offsets.long(), torch.cat([torch.zeros(1, dtype=int), counted]))
    wrapped = segments(torch.where(index < 0, -rows, index - rows), rows, narrow, wraps=True)
    again = segments(index.clamp(min=0), rows, narrow)
    for one, other in zip(wrapped, again):
        assert torch.equal(one, other)
    given[5] = rows
    assert segments(given, rows, narrow, ignored=ignored)[1][-1] == -1


@pytest.mark.parametrize("narrow", [True, False])
def test_the_sort_of_any_device_is_that_of_the_cpu(narrow):
    indices = [
        torch.randint(-16, 16, (301,)),
        torch.tensor([3, 99, 0, 3]),  # the second is ignored
        torch.tensor([4, 7, 1], dtype=torch.int32),  # out of range
        torch.tensor([], dtype=torch.int64),
        torch.tensor([0, 0, -1]),  # out of range
    ]
    rows = [16, 1, -1, 5, 0, 99, 6, 0, -1, 3, 0, -1, 2, 0, -1]
    segments = torch.ops.torch_stitch.segments.default
    any_device = torch._C.DispatchKey.CompositeExplicitAutograd
    by_torch = segments._op_dk(any_device, indices, narrow, rows)
    for i, (one, other) in enumerate(zip(by_torch, segments(indices, narrow, rows), strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape
        is_order = i % 2 == 0  # of what is in no segment anything may follow
        kept = max(0, int(by_torch[i + is_order][-1])) if is_order else len(one)
        assert torch.equal(one[:kept], other[:kept]), i


@pytest.mark.parametrize("target", ["a100", "h100", "h200", "b200"])
def test_gpu_kernels_compile_without_spills(target):
    def fn(x, cache, place, index, source):
        cache.index_copy_(1, place, source[:3, None])
        total = x.scatter_reduce(0, index[:, None].expand_as(source), source.exp(), "amax")
        return total.index_add(0, index, source).softmax(1)

    inputs = some((ROWS, 11)), some((3, 7, 11)), torch.tensor([5]), order_of("mixed")
    with torch.no_grad():
        report = torch_stitch.explain(fn, *inputs, some((COUNT, 11)), target=target)
    kernels = json.loads(report.to_json())["kernels"]
    assert all(k["registers"] > 0 and k["spill_bytes"] == 0 for k in kernels), kernels


def test_nothing_to_write():
    check(scattered, some((5, 3)), torch.zeros(0, dtype=torch.int64), some((0, 3)), calls=1)


def test_other_dimensions_are_walked_as_one():
    def fn(x, index):
        added = x.index_add(2, index, x.index_select(2, index))
        return added, added.scatter_reduce(2, index.expand(7, 3, -1), x[..., :5], "amax")

    check(fn, some((7, 3, 600)), torch.randint(600, (5,)), calls=2)


@BOTH
def test_a_second_stage_reads_what_rows_combined(rows):
    def fn(x, index, source):
        total = x.index_add(0, index, source)
        return total.softmax(1), total.amax(0), total[index]

    inputs = some((rows, 13)), order_of("mixed", rows), some((COUNT, 13))
    check(fn, *inputs, calls=int(rows == MANY))


@BOTH
@pytest.mark.parametrize("past", [0, None])
def test_an_index_out_of_range_is_an_error(past, rows):
    index = order_of("mixed", rows)
    index[7] = -1 if past is None else rows + past
    compiled = compile_strictly(scattered)
    with torch.no_grad(), pytest.raises(RuntimeError, match="out of range in aten.scatter_add"):
        compiled(some((rows, 13)), index, some((COUNT, 13)))
    inputs = some((rows, 13)), index.clamp(0, 3), some((COUNT, 13))
    check(scattered, *inputs, calls=int(rows == MANY), terms=COUNT, compiled=compiled)


def test_a_place_out_of_range_is_an_error_and_the_process_lives():
    compiled = compile_strictly(one_row_then_read)
    inputs = some((3, 7, 11)), some((3, 1, 11))
    for place in (7, -8):
        with torch.no_grad(), pytest.raises(IndexError, match="out of range in aten.index_copy"):
            compiled(inputs[0], torch.tensor([place]), inputs[1])
    check(one_row_then_read, inputs[0], torch.tensor([6]), inputs[1], compiled=compiled)


def softmax_of_segments(source, index, size, other=None):
    shape = (size, *source.shape[1:])
    rows = index.view(-1, *[1] * (source.dim() - 1)).expand_as(source)
    largest = torch.full(shape, -torch.inf, dtype=source.dtype).scatter_reduce(
        0, rows, source, "amax"
    )
    e = (source - largest[index if other is None else other]).exp()
    return e / torch.zeros_like(largest).scatter_add(0, rows, e)[index]


@pytest.mark.parametrize("columns", [(), (3,), (64,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_softmax_over_segments(dtype, columns):
    source = torch.randn(500, *columns).to(dtype)
    check(lambda x, i: softmax_of_segments(x, i, 80), source, torch.randint(70, (500,)))
    calls = int(source[0].nbytes > NARROW)
    check(lambda x, i: softmax_of_segments(x, i, 8000), source, torch.arange(500) // 9, calls=calls)


def test_what_belongs_to_a_row_is_not_gathered_at_its_positions():
    inputs = torch.randn(100_000), torch.randint(10_000, (100_000,))
    with torch.no_grad():
        plan = torch_stitch.explain(
            lambda x, i: softmax_of_segments(x, i, 10_000), *inputs, target="h200"
        )
    plan = json.loads(plan.to_json())
    (kernel,) = plan["kernels"]
    assert sum("segment" in name for name in kernel["scheme"]) == 2
    assert not any("exp" in name for name in kernel["scheme"]), "nothing between is stored"
    assert plan["bytes_planned"] < 1.3 * plan["bytes_compulsory"]


@pytest.mark.parametrize("other", [lambda i: i.flip(0), lambda i: i + 1, lambda i: i - 80])
def test_rows_of_other_positions_are_gathered(other):
    """Flipped, of other rows, counted from the end: the index is not the one that was sorted."""
    source, index = torch.randn(500), torch.randint(70, (500,))

    def fn(x, i):
        return softmax_of_segments(x, i, 80, other(i))

    check(fn, source.clamp(-3, 3), torch.cat([torch.arange(80), index[:420]]) % 79)


def test_elements_in_another_order_than_the_index():
    def fn(x, i):
        largest = x.new_zeros(20).scatter_reduce(0, i, x, "amax")
        e = (x - largest[i]).exp().flip(0)
        return x.new_zeros(20).scatter_add(0, i, e)

    check(fn, torch.randn(300), torch.randint(20, (300,)))


# Stores by a mask.


def filled_where(x, mask, y):
    x = x * 2
    x[mask] = 3
    x[:, mask[0]] = y
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_value_is_stored_by_a_mask(dtype):
    x, mask = some((7, 300), dtype), torch.rand(7, 300) < 0.3
    check(filled_where, x, mask, some((), dtype))
    torch._dynamo.reset()  # the rows of a value that were found to vary are not those of x
    check(filled_where, x, mask & False, some((7, 1), dtype))
    check(lambda x, mask: x.clone().index_put_((mask[:, 0],), x[0]), x, mask)


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_argument_is_written_by_a_mask(dynamic):
    def fn(x, mask):
        x[mask] = float("nan")
        x[..., mask[0, 0]] = 1.0
        return x.isnan().sum()

    compiled = compile_strictly(fn, dynamic=dynamic)
    for shape in ((3, 5, 7), (4, 6, 129), (1, 1, 1)):
        check(fn, some(shape), torch.rand(shape) < 0.5, compiled=compiled)


def test_values_for_each_place_of_a_mask_are_eagers_call():
    def fn(x, mask, y):
        x = x + 1
        x[mask] = y
        return x

    mask = torch.zeros(9, dtype=torch.bool)
    mask[[1, 4]] = True
    check(fn, some((9,)), mask, some((2,)), calls=1)
