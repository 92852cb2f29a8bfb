"""GPU kernels for sizes known when run assume sizes like the first call's; each call is checked."""

import functools
import threading

import pytest
import torch
from support.compare import compile_strictly, expect_equal

import torch_stitch

ON_H200 = {"target": "h200", "simulate": True}


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def softmax(x):
    return x.softmax(1)


def norm_backward(x):
    gradient, rstd = x.sin(), (x.square().mean(1, True) + 1e-5).rsqrt()
    of_rows = (gradient * x).mean(1, True)
    return rstd * (gradient - x * rstd.square() * of_rows), (gradient * x * rstd).sum(0)


def rotary(x):
    x = x * (x.square().mean(1, keepdim=True) + 1e-6).rsqrt()
    first, second = x.chunk(2, dim=1)
    return x * 0.5 + torch.cat((-second, first), dim=1) * 0.25


def sums(x):
    return x.sum(0), x.amax(), x.var(0)


def group_norm(x):
    n, channels, places = x.shape
    grouped = x.view(n, 4, channels // 4 * places)
    return ((grouped - grouped.mean(2, True)) * grouped.var(2, keepdim=True).rsqrt()).view_as(x)


def scaled_by_largest(x):
    return x / x.abs().amax()


def test_rows_of_any_number_stay_on_chip_across_a_barrier():
    plan = torch_stitch.explain(scaled_by_largest, draw(256, 8192), target="h200").plan
    torch._dynamo.reset()
    x = draw(256, 8192)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    dynamic = torch_stitch.explain(scaled_by_largest, x, target="h200").plan
    assert dynamic["bytes_planned"] == plan["bytes_planned"]
    assert plan["bytes_planned"] < 3 * 4 * x.numel()  # read once, stored once
    compiled = compile_strictly(scaled_by_largest, dynamic=True, options=ON_H200)
    for rows in (256, 96, 17):
        x = draw(rows, 8192)
        torch.testing.assert_close(compiled(x), scaled_by_largest(x), rtol=1e-6, atol=0)


def test_segments_of_any_number_are_sorted_by_indices_of_32_bits():
    def fn(x, at):
        return torch.zeros(40, x.shape[1]).index_add(0, at, x)

    inputs = draw(300, 64), torch.arange(300) % 37
    plan = torch_stitch.explain(fn, *inputs, target="h200").plan
    torch._dynamo.reset()
    for value in inputs:
        torch._dynamo.maybe_mark_dynamic(value, 0)
    dynamic = torch_stitch.explain(fn, *inputs, target="h200").plan
    assert dynamic["bytes_planned"] == plan["bytes_planned"]
    assert any(size.endswith("<= 2147483647") for size in dynamic["assumed_sizes"])
    compiled = compile_strictly(fn, dynamic=True, options=ON_H200)
    for count in (300, 41, 1):
        x, at = draw(count, 64), torch.arange(count) % 37
        torch.testing.assert_close(compiled(x, at), fn(x, at), rtol=1e-5, atol=1e-6)


def time_for_h200(fn, x, is_dynamic=True, clock=True, **options):
    """Microseconds by the clock."""
    torch._dynamo.reset()
    for dimension in range(x.dim()) if is_dynamic else ():
        torch._dynamo.maybe_mark_dynamic(x, dimension)
    kernels = torch_stitch.explain(fn, x, target="h200", clock=clock, **options).plan["kernels"]
    return sum(kernel["clock_us"] for kernel in kernels)


def programs():
    counters = torch_stitch.counters()
    return counters["plans_made"] + counters["plans_found"]


def test_explain_lists_what_is_assumed_of_sizes(fresh):
    def assumed(**options):
        torch._dynamo.reset()
        x = torch.empty(5120, 2000)
        for dimension in range(2):
            torch._dynamo.maybe_mark_dynamic(x, dimension)
        return torch_stitch.explain(softmax, x, target="h200", **options)

    sizes = assumed().plan["assumed_sizes"]
    assert {"s1 = s2*8", "s2*8 <= 2048"} <= set(sizes), sizes
    assert "if s2*8 <= 2048\n" in str(assumed())
    assert assumed(assume_sizes=False).plan["assumed_sizes"] == []


SHAPES = [(24, 256), (24, 248), (7, 256), (24, 255), (25, 500), (3, 2), (2, 1025), (130, 96)]


@pytest.mark.parametrize("fn", [softmax, norm_backward, sums, rotary])
def test_sizes_of_every_class_are_right_whichever_comes_first(fresh, fn):
    for first in range(0, len(SHAPES), 3):
        torch._dynamo.reset()
        compiled = compile_strictly(fn, options=ON_H200, dynamic=True)
        for shape in SHAPES[first:] + SHAPES[:first]:
            x = draw(*shape)
            exact = fn(x.double())
            expected = [y.float() for y in ([exact] if torch.is_tensor(exact) else exact)]
            got = compiled(x)
            got = [got] if torch.is_tensor(got) else list(got)
            for result, value in zip(got, expected, strict=True):
                scale = float(value.abs().max()) + 1e-6
                expect_equal(result, value, rtol=2e-5, atol=2e-6 * scale)


@pytest.mark.parametrize("varied", [0, 1])
def test_sixty_four_sizes_have_four_programs_at_most(fresh, varied):
    compiled = compile_strictly(softmax, options=ON_H200, dynamic=True)
    before = programs()
    for size in [48, *range(2, 65)]:
        shape = [40, 40]
        shape[varied] = size
        expect_equal(compiled(draw(*shape)), softmax(draw(*shape)), rtol=1e-5, atol=1e-8)
    assert 1 <= programs() - before <= (1 if varied == 0 else 4)


def test_sizes_of_one_class_have_one_program(fresh):
    compiled = compile_strictly(softmax, options=ON_H200, dynamic=True)
    before = programs()
    for shape in [(24, 1024), (3, 1000), (700, 1024), (2, 8)]:
        expect_equal(compiled(draw(*shape)), softmax(draw(*shape)), rtol=1e-5, atol=1e-8)
    assert programs() - before == 1


def test_nothing_is_assumed_where_the_option_says_so_and_on_hosts(fresh):
    for options in (ON_H200 | {"assume_sizes": False}, {}):
        torch._dynamo.reset()
        compiled = compile_strictly(softmax, options=options, dynamic=True)
        before = programs()
        for shape in [(24, 1024), (3, 7), (70, 2049)]:
            expect_equal(compiled(draw(*shape)), softmax(draw(*shape)), rtol=1e-5, atol=1e-8)
        assert programs() - before == 1


# Of the sums' blocks of 512 and of 1,024 threads the model says the same, the clock does not.
# A rotary embedding's loops read by constants from one address whatever is assumed.
@pytest.mark.parametrize(
    "fn, clock, gain",
    [(softmax, True, 1.4), (norm_backward, True, 1.4), (sums, "choose", 1.4), (rotary, True, 1.2)],
)
def test_by_the_clock_assumed_sizes_take_as_long_as_static_ones(fresh, fn, clock, gain):
    static, assumed, unknown = (
        time_for_h200(fn, draw(2048, 2048), clock=clock, **how)
        for how in ({"is_dynamic": False}, {}, {"assume_sizes": False})
    )
    assert assumed < 1.15 * static and unknown > gain * static, (static, assumed, unknown)


def test_a_reshape_that_a_guard_makes_exact_is_no_cut(fresh):
    for target in ("h200", "cpu"):
        x = draw(2, 320, 64)
        torch._dynamo.reset()
        for dimension in range(3):
            torch._dynamo.maybe_mark_dynamic(x, dimension)
        plan = torch_stitch.explain(group_norm, x, target=target).plan
        assert len(plan["kernels"]) == 1 and not plan["library_calls"], plan
    compiled = compile_strictly(group_norm, dynamic=True)
    for shape in [(2, 320, 64), (3, 12, 5), (1, 4, 31)]:
        expect_equal(compiled(draw(*shape)), group_norm(draw(*shape)), rtol=1e-4, atol=1e-5)


def test_sizes_that_data_decides_are_not_assumed(fresh):
    def rows_above(x):
        return (x[x[:, 0] > 0] * 2).softmax(1)

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = compile_strictly(rows_above, options=ON_H200, dynamic=True)
        for shape in [(32, 64), (7, 64), (100, 33)]:
            x = draw(*shape)
            expect_equal(compiled(x), rows_above(x), rtol=1e-5, atol=1e-8)


def test_threads_that_break_an_assumption_at_once_share_a_program(fresh):
    compiled = compile_strictly(softmax, options=ON_H200, dynamic=True)
    compiled(draw(8, 64))
    before, results = programs(), {}

    def call(number):
        results[number] = compiled(draw(8, 301, seed=number))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
    list(map(threading.Thread.start, threads))
    list(map(threading.Thread.join, threads))
    for number, result in results.items():
        expect_equal(result, softmax(draw(8, 301, seed=number)), rtol=1e-5, atol=1e-8)
    assert len(results) == 3 and programs() - before == 1


@functools.cache
def gather_of(rows):
    return torch.arange(5).remainder(rows)


def test_an_index_out_of_range_is_found_in_every_program(fresh):
    compiled = compile_strictly(lambda x, i: x[i] * 2, options=ON_H200, dynamic=True)
    for columns in (64, 301, 77):
        x = draw(9, columns)
        expect_equal(compiled(x, gather_of(9)), x[gather_of(9)] * 2)
        with pytest.raises(IndexError):
            compiled(x, torch.tensor([1, 9, 2, 3, 4]))
            torch_stitch.synchronize()
