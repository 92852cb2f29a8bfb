"""Parts of one value, reductions among them, are written where they belong: no pass copies them."""

import json

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from tests.support.compare import compile_strictly, expect_as_exact, expect_equal

pytestmark = pytest.mark.usefixtures("fresh")


def join(a, b, c):
    return torch.cat([F.softmax(a, -1), F.gelu(b), c[:, :7]], 1)


def make_inputs(rows=40, widths=(51, 10, 64), dtype=torch.float32):
    return [torch.randn(rows, width).to(dtype) for width in widths]


def check(fn, inputs, terms, calls=0):
    """As exact as eager, of its strides, with so many library calls."""
    got, eager = compile_strictly(fn)(*inputs), fn(*inputs)
    exact = fn(*(x.double() for x in inputs))
    results = (got, eager, exact) if isinstance(got, tuple) else ([got], [eager], [exact])
    for x, y, z in zip(*results, strict=True):
        assert x.stride() == y.stride()
        expect_as_exact(x, y, z, terms)
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] == 0 and counters["library_calls"] == calls, counters


def plan_of(fn, inputs, **how):
    return json.loads(torch_stitch.explain(fn, *inputs, **how).to_json())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 40, 257])
def test_rows_of_unequal_parts(rows, dtype):
    check(join, make_inputs(rows, dtype=dtype), terms=51)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_any_dimension_and_parts_without_elements(dim):
    def fn(a, b):
        return torch.cat([a.softmax(-1), b.narrow(dim, 0, 0), b.narrow(dim, 1, 3)], dim)

    check(fn, [torch.randn(6, 5, 8) for _ in range(2)], terms=8)


def test_a_library_call_reads_what_parts_are_written_into():
    def fn(a, b, weight):
        return torch.cat([a.sum(1), b * 2], 1) @ weight

    inputs = [torch.randn(9, 5, 12), torch.randn(9, 7), torch.randn(19, 4)]
    check(fn, inputs, terms=60, calls=1)
    plan = plan_of(fn, inputs, target="h200")
    assert len(plan["kernels"]) == 1
    stored = 9 * 19 * 4
    assert plan["kernels"][0]["bytes_written"] == stored


def test_a_view_of_it_is_what_is_seen():
    def fn(a, b):
        y = torch.cat([a.softmax(-1), b], 1)
        return y.view(2, -1).t(), y[:, 3:5]

    check(fn, make_inputs(8, (5, 4)), terms=5)


def test_a_part_may_be_an_output_or_come_twice():
    def fn(a, b):
        s = a.softmax(-1)
        return torch.cat([s, b, s], 1), s

    check(fn, make_inputs(16, (33, 6)), terms=33)


def test_what_kernels_read_again_or_an_input_becomes_is_not_joined():
    def fn(a, b, state):
        y = torch.cat([a.softmax(-1), b], 1)
        state.copy_(torch.cat([b, a.sum(-1, keepdim=True)], 1))
        return y, y.sum(0)

    a, b = make_inputs(16, (33, 6))
    ours, theirs = torch.zeros(16, 7), torch.zeros(16, 7)
    got, eager = compile_strictly(fn)(a, b, ours), fn(a, b, theirs)
    for x, y in zip((*got, ours), (*eager, theirs), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


def test_each_call_returns_memory_of_its_own():
    compiled, inputs = compile_strictly(join), make_inputs()
    first = compiled(*inputs)
    kept = first.clone()
    compiled(*(x + 1 for x in inputs))
    expect_equal(first, kept)


def test_parts_of_any_size():
    compiled = compile_strictly(join, dynamic=True)
    for rows in (3, 8, 21):
        inputs = make_inputs(rows, (rows + 2, 9, 30))
        torch.testing.assert_close(compiled(*inputs), join(*inputs))


BACKWARDS = {
    "flip": lambda x, y: torch.stack((x, y)).flip(0),
    "both": lambda x, y: torch.stack((x, y)).flip(0, 1),
    "columns": lambda x, y: torch.stack((x, y), -1).flip(-1),
    "flattened": lambda x, y: torch.stack((x, y)).flip(0).flatten(),
    "cat": lambda x, y: torch.cat((x, y)).flip(0).roll(3, 0),
    "padded": lambda x, y: F.pad(torch.stack((x, y)).flip(0), (0, 0, 1, 2)),
    "reduced": lambda x, y: torch.stack((x, y)).flip(0).cumsum(0).sum(-1),
    "written": lambda x, y: torch.slice_scatter(torch.stack((x, y)).flip(0), y[None], 0, 1, 2),
    "repeated": lambda x, y: torch.stack((x, y)).flip(0).repeat(2, 1),
}


@pytest.mark.parametrize("name", BACKWARDS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_parts_that_are_read_backwards(name, dynamic):
    function = lambda x, y: BACKWARDS[name](x * 2, y + 1) * 0.5  # noqa: E731
    compiled = compile_strictly(function, dynamic=dynamic)
    for size in (12, 33, 1):
        x, y = torch.randn(size), torch.randn(size)
        torch.testing.assert_close(compiled(x, y), function(x, y))


def test_gradients():
    def fn(a, b):
        return torch.cat([a.softmax(-1), b.exp(), a.mean(-1, keepdim=True)], 1)

    inputs = [x.requires_grad_() for x in make_inputs(12, (17, 5))]
    weights = torch.randn(12, 23)
    both = compile_strictly(fn), fn
    grads = [torch.autograd.grad((f(*inputs) * weights).sum(), inputs) for f in both]
    for got, eager in zip(*grads, strict=True):
        torch.testing.assert_close(got, eager, rtol=1e-5, atol=1e-5)


def test_each_byte_is_moved_once_on_a_gpu():
    inputs = make_inputs(4096, (512, 100, 64))
    plan = plan_of(join, inputs, target="h200")
    assert len(plan["kernels"]) == 1 and not plan["library_calls"]
    assert plan["bytes_planned"] == plan["bytes_compulsory"]


ROLLS = [((1,), (0,)), ((3, -1), (0, 1)), ((-3, -3), (1, 2)), ((0,), (1,)), ((100,), (-1,)),
         ((-7, 5), (0, -1)), ((1, 1), (0, 0)), (2, ())]  # fmt: skip


@pytest.mark.parametrize("how", ROLLS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_rolled_values_are_two_parts(how, dynamic):
    compiled = compile_strictly(lambda x: torch.roll(x + 1, *how) * 2, dynamic=dynamic)
    for x in torch.randn(4, 6, 5), torch.randn(3, 2, 9).transpose(0, 2), torch.randn(1, 1, 2):
        torch_stitch.reset_counters()
        result, expected = compiled(x), torch.roll(x + 1, *how) * 2
        assert result.equal(expected) and result.stride() == expected.stride()
        flattens = dynamic and not how[1]  # what no atoms can tell of run-time sizes
        assert flattens or torch_stitch.counters()["library_calls"] == 0


def test_rolled_values_have_eagers_gradients():
    x, weights = torch.randn(5, 7, requires_grad=True), torch.randn(5, 7)
    compiled = compile_strictly(lambda x: torch.roll(x * x, (2, -1), (0, 1)))
    (grad,) = torch.autograd.grad((compiled(x) * weights).sum(), x)
    torch.testing.assert_close(grad, 2 * x * torch.roll(weights, (-2, 1), (0, 1)))


def test_no_policy_evaluates_states_again_for_a_sum_beside_them():
    """What recurrent steps leave is stacked; a sum over the steps has another mapping."""

    def stack_and_sum(read, mask, *states):
        stacked = torch.stack(states, 1)
        return stacked, torch.cat([stacked[:, :-1], read[:, 1:]], -1), (read * mask).sum(1)

    inputs = [torch.rand(256, 8, 36), torch.rand(256, 8, 1), *torch.rand(8, 256, 36)]
    us = {}
    for policy in ("auto", "fusionstitching2020", "astitch"):
        plan = plan_of(stack_and_sum, inputs, target="h200", policy=policy)
        us[policy] = sum(kernel["predicted_us"] for kernel in plan["kernels"])
    assert max(us.values()) < 2 * us["auto"], us
