"""Compiled models on a GPU: as accurate as eager, with eager's layout, nothing by a fallback."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

import torch_stitch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import accuracy  # noqa: E402
from benchmarks.bert import bert_layer  # noqa: E402
from benchmarks.cases import BF16, CASES, FP32, tiny_ops  # noqa: E402
from benchmarks.child import on_device  # noqa: E402
from tests.support.compare import as_bits  # noqa: E402
from tests.support.programs import sizes_of  # noqa: E402
from tests.support.stitched import CASES as STITCHED  # noqa: E402
from tests.support.stitched import make_inputs, run_case  # noqa: E402
from torch_stitch.measure.reference import copy_tensors, widen  # noqa: E402

pytestmark = pytest.mark.gpu

FLOATS = (torch.float64, FP32, torch.float16, BF16)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    yield
    torch.cuda.synchronize()


def compare(fn, inputs, terms, **options):
    """Checks results and mutated inputs against eager and fp64, and that kernels were stitched."""
    fn, inputs = on_device(fn, inputs)
    ours, theirs, exact = (copy_tensors(inputs) for _ in range(3))
    compiled = torch.compile(fn, backend="stitch", options={"strict": True, **options})
    with torch.no_grad():
        left = accuracy.tensors_after(compiled, ours), accuracy.tensors_after(fn, theirs)
        reference = accuracy.tensors_after(*widen(fn, exact))
    found = accuracy.judge(*left, reference, terms)
    assert found["ok"], found
    assert torch_stitch.counters()["kernels"] > 0
    assert torch_stitch.counters()["fallback_ops"] == 0


@pytest.mark.parametrize(
    ("name", "sizes"), [(name, sizes) for name in CASES for sizes in sizes_of(name)]
)
@pytest.mark.parametrize("dtype", [FP32, BF16])
def test_named_subgraphs(name, sizes, dtype):
    if name in ("batchnorm_relu", "layernorm_backward") and dtype == BF16:
        pytest.skip("its statistics are fp32 on a GPU: one width suffices")
    case = CASES[name]
    compare(*case.build(dtype, **sizes), case.terms(sizes))


@pytest.mark.parametrize("name", CASES)
def test_named_subgraphs_as_planned(name):
    case = CASES[name]
    compare(*case.planned(), case.terms(case.planning))


@pytest.mark.parametrize("name", STITCHED)
def test_stages_that_share_a_launch(name):
    case = STITCHED[name]
    fn, inputs = on_device(case.fn, make_inputs(case.small))
    ours, theirs, exact = (copy_tensors(inputs) for _ in range(3))
    compiled = torch.compile(fn, backend="stitch", options={"strict": True})
    results, expected = run_case(case, compiled, *ours), run_case(case, fn, *theirs)
    reference = accuracy.in_fp64(partial(run_case, case, fn), exact)
    found = accuracy.judge(results, expected, reference, case.terms)
    assert found["ok"], found
    assert torch_stitch.counters()["kernels"] == 1 + case.trains
    assert torch_stitch.counters()["fallback_ops"] == 0


# A block that goes on before all have come reads what is not there yet, now and then.
@pytest.mark.parametrize("name", STITCHED)
def test_large_stages_that_share_a_launch_give_the_same_bits(name):
    case = STITCHED[name]
    fn, inputs = on_device(case.fn, make_inputs(case.large))
    compiled = torch.compile(fn, backend="stitch", options={"strict": True})
    first = tree_leaves(run_case(case, compiled, *copy_tensors(inputs)))
    for _ in range(5):
        again = tree_leaves(run_case(case, compiled, *copy_tensors(inputs)))
        assert all(as_bits(a).equal(as_bits(b)) for a, b in zip(again, first, strict=True))


@pytest.mark.parametrize("dtype", FLOATS)
def test_pointwise_of_every_float(dtype):
    x, y = torch.randn(3, 1001, dtype=dtype), torch.randn(1001, dtype=dtype)
    compare(lambda a, b: F.gelu(a * b).sigmoid() + a.tanh(), (x, y), 1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (0, 1, 2)])
def test_reductions_of_every_float(dtype, axes):
    x = torch.randn(13, 33, 65, dtype=dtype)
    compare(lambda a: (a.sum(axes), a.amax(axes), a.var(axes)), (x,), 13 * 33 * 65)


@pytest.mark.parametrize("rows, cols", [(4, 1 << 20), (1 << 20, 4), (64, 30000), (750, 32)])
def test_long_and_many_rows(rows, cols):
    compare(lambda x: x.softmax(-1), (torch.randn(rows, cols),), cols)


def test_tiny():
    compare(*tiny_ops(), 1)


@pytest.mark.parametrize("batch", [1, 8])
def test_bert_layer(batch):
    compare(*bert_layer(batch), 3072)


def test_training_step():
    def train(compile_it):
        torch.manual_seed(1)
        model, (x, bias) = on_device(*bert_layer(2))
        forward = torch.compile(model, backend="stitch") if compile_it else model
        forward(x, bias).square().mean().backward()
        return [p.grad for p in model.parameters()]

    for mine, eager in zip(train(True), train(False)):
        torch.testing.assert_close(mine, eager, rtol=1e-3, atol=1e-5)
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_non_contiguous_and_misaligned():
    base = torch.randn(65, 1027)
    compare(lambda x: x.softmax(-1) * 2, (base[1:, 3:],), 1027)
    compare(lambda x: x.relu() + x.sum(0), (base.t(),), 1027)


def test_dynamic_batch():
    compiled = torch.compile(
        lambda x: F.layer_norm(x, (x.shape[-1],)), backend="stitch", dynamic=True,
        options={"strict": True},
    )  # fmt: skip
    for rows in (2, 7, 64, 1000):
        x = torch.randn(rows, 384, device="cuda")
        exact = F.layer_norm(x.double(), (384,))
        found = accuracy.judge(compiled(x), F.layer_norm(x, (384,)), exact, 384)
        assert found["ok"], found


def test_sizes_of_every_class():
    """Each call is checked against what its kernels assume; four programs at most."""

    def fn(x):
        return x.softmax(1), x.sum(0), x.amax()

    compiled = torch.compile(fn, backend="stitch", dynamic=True, options={"strict": True})
    for shape in [(512, 2048), (300, 2040), (512, 2047), (77, 5000), (2, 3), (4096, 129)]:
        x = torch.randn(shape, device="cuda")
        for got, exact in zip(compiled(x), fn(x.double()), strict=True):
            torch.testing.assert_close(got, exact.float(), rtol=1e-5, atol=1e-4)
    counters = torch_stitch.counters()
    assert counters["plans_made"] + counters["plans_found"] <= 4, counters


def test_other_stream():
    compiled = torch.compile(lambda x: (x * 2).softmax(-1), backend="stitch")
    x = torch.randn(512, 512, device="cuda")
    expected = compiled(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = torch.randn(4096, 4096, device="cuda") @ torch.randn(4096, 4096, device="cuda")
        result = compiled(x + y[:512, :512] * 0)
    stream.synchronize()
    assert result.equal(expected)


def test_same_bits_every_time():
    fn, inputs = on_device(*CASES["sums_and_max"].planned())
    compiled = torch.compile(fn, backend="stitch")
    first = compiled(*inputs)
    for _ in range(20):
        assert all(a.equal(b) for a, b in zip(compiled(*inputs), first))


def test_index_out_of_range_is_an_error():
    compiled = torch.compile(lambda table, ids: table[ids] * 2, backend="stitch")
    table = torch.randn(10, 64, device="cuda")
    good = torch.tensor([0, 9, -10], device="cuda")
    assert compiled(table, good).equal(table[good] * 2)
    with pytest.raises((IndexError, RuntimeError)):
        compiled(table, torch.tensor([0, 3, 10], device="cuda"))
        torch_stitch.synchronize()
    assert compiled(table, good).equal(table[good] * 2)


def recorded(fn, **how):
    """fn by CUDA graphs.  A first call warms up, a second one records, later ones replay."""
    return torch.compile(fn, backend="stitch", mode="reduce-overhead", **how)


def test_recorded_launches_read_inputs_that_move():
    compiled = recorded(lambda x, y: (x * y).softmax(-1) + (x + y).sum(0))
    plain = torch.compile(lambda x, y: (x * y).softmax(-1) + (x + y).sum(0), backend="stitch")
    for _ in range(5):
        x, y = torch.randn(2, 300, 1000, device="cuda")
        assert compiled(x, y).equal(plain(x, y))
    assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 0


def test_recorded_launches_of_several_sizes():
    compiled = recorded(lambda x: F.layer_norm(x, (x.shape[-1],)), dynamic=True)
    for rows in (2, 7, 64) * 3:
        x = torch.randn(rows, 384, device="cuda")
        torch.testing.assert_close(compiled(x), F.layer_norm(x, (384,)), rtol=1e-5, atol=1e-5)


def test_recorded_launches_write_buffers_once_a_call():
    model, twin = (torch.nn.BatchNorm1d(64, device="cuda") for _ in range(2))
    compiled = recorded(model)
    for _ in range(5):
        x = torch.randn(32, 64, device="cuda")
        torch.testing.assert_close(compiled(x).detach(), twin(x).detach(), rtol=1e-4, atol=1e-5)
    assert model.num_batches_tracked.item() == 5
    torch.testing.assert_close(model.running_var, twin.running_var)


def test_recorded_training_steps():
    model, (x, bias) = on_device(*bert_layer(2))
    compiled = recorded(model)
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        grads = []
        for forward in (compiled, model):
            model.zero_grad()
            forward(x, bias).square().mean().backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        for mine, eager in zip(*grads):
            torch.testing.assert_close(mine, eager, rtol=1e-3, atol=1e-5)
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_dropout_goes_on_with_the_gpus_generator():
    compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend="stitch")
    x = torch.ones(1 << 16, device="cuda", requires_grad=True)
    torch.cuda.manual_seed(3)
    first, second = compiled(x), compiled(x)
    assert abs(first.count_nonzero() / x.numel() - 0.5) < 0.02 and not first.equal(second)
    first.sum().backward()
    assert x.grad.equal(first)
    torch.cuda.manual_seed(3)
    assert compiled(x).equal(first) and compiled(x).equal(second)


def test_recorded_dropout_draws_again_in_each_call():
    compiled = recorded(lambda x: F.dropout(x, 0.5))
    x = torch.ones(1 << 16, device="cuda")
    masks = [compiled(x).clone() for _ in range(5)]
    assert all(abs(mask.count_nonzero() / x.numel() - 0.5) < 0.02 for mask in masks)
    assert not any(a.equal(b) for a, b in zip(masks, masks[1:]))


def test_recorded_launches_report_an_index_out_of_range():
    compiled = recorded(lambda table, ids: table[ids] * 2)
    table = torch.randn(10, 64, device="cuda")
    good, bad = torch.tensor([[0, 9, -10], [0, 3, 10]], device="cuda")
    for _ in range(3):
        assert compiled(table, good).equal(table[good] * 2)
    with pytest.raises((IndexError, RuntimeError)):
        compiled(table, bad)
        torch_stitch.synchronize()
    assert compiled(table, good).equal(table[good] * 2)


@pytest.mark.parametrize("name", CASES)
def test_launches_that_begin_early_give_the_same_bits(name):
    fn, inputs = on_device(*CASES[name].planned())
    found = []
    for early in (False, True):
        torch.compiler.reset()
        compiled = torch.compile(fn, backend="stitch", options={"dependent_launch": early})
        for _ in range(5):  # one behind the other
            torch.manual_seed(0)
            results = accuracy.tensors_after(compiled, copy_tensors(inputs))
        found.append([as_bits(x) for x in tree_leaves(results)])
    assert all(a.equal(b) for a, b in zip(*found, strict=True))


# Of all floats, in units in the last place beside fp64: what math_approx.cuh says of a GPU.
FUNCTIONS = {
    "exp": (torch.exp, 2.07),
    "exp2": (torch.exp2, 2.39),
    "sigmoid": (torch.sigmoid, 3.07),
    "tanh": (torch.tanh, 1.90),
    "rsqrt": (torch.rsqrt, 1.52),
    "sinh": (torch.sinh, 1.63),
    "cosh": (torch.cosh, 1.36),
    "erfc": (torch.erfc, 4.97),
}
CHUNK = 1 << 26


def units_off(found, exact):
    """The largest distance, where both are finite, in units of the exact result's binade."""
    exponent = torch.frexp(exact.clamp(-3e38, 3e38)).exponent.clamp(min=-125)
    off = (found.double() - exact).abs() / torch.ldexp(torch.ones_like(exact), exponent - 24)
    return torch.where(found.isfinite() & exact.float().isfinite(), off, 0).max()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_approximate_functions_of_all_floats(name, record_property):
    function, limit = FUNCTIONS[name]
    compiled = torch.compile(lambda x: function(x), backend="stitch", options={"strict": True})
    worst = torch.zeros((), dtype=torch.float64, device="cuda")
    for first in range(-(1 << 31), 1 << 31, CHUNK):
        bits = torch.arange(first, first + CHUNK, dtype=torch.int64, device="cuda")
        x = bits.to(torch.int32).view(torch.float32)
        found, exact = compiled(x), function(x.double())
        worst = torch.maximum(worst, units_off(found, exact))
        eager = function(x)
        assert found.isnan().equal(eager.isnan()) and found.isinf().equal(eager.isinf())
    record_property("worst_ulp", worst.item())
    print(name, "is off by at most", round(worst.item(), 3), "units")
    assert worst < limit
