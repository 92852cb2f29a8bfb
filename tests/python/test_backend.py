"""torch.compile(backend="stitch") as a user runs it: results, memory, sizes, training, fallback."""

import copy
import re
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses import FakeTensorMode

import torch_stitch
from torch_stitch import _core, backend


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a fallback warns
        yield


def compile_strictly(fn, **options):
    return torch.compile(fn, backend="stitch", options={"strict": True}, **options)


def check(fn, *inputs, rtol=1e-5, atol=1e-5, **options):
    """Compares values, dtypes and strides with eager, on inputs that each gets for itself."""
    mine, theirs = ([copy.deepcopy(x) for x in inputs] for _ in range(2))
    with torch.no_grad():
        got, expected = compile_strictly(fn, **options)(*mine), fn(*theirs)
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for g, e in zip((*got, *mine), (*expected, *theirs), strict=True):
        torch.testing.assert_close(g, e, rtol=rtol, atol=atol)
        if isinstance(e, torch.Tensor):
            assert g.stride() == e.stride()
    return got


class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(width), nn.Linear(width, 2 * width)
        self.down, self.drop = nn.Linear(2 * width, width), nn.Dropout(0.5)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


def test_the_backend_is_registered():
    assert "stitch" in torch._dynamo.list_backends(exclude_tags=())


def test_a_model():
    check(Block().eval(), torch.randn(4, 7, 32))
    assert torch_stitch.counters()["kernels"] > 0
    assert torch_stitch.counters()["fallback_ops"] == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    tolerance = 2e-2 if dtype.itemsize == 2 else 1e-5
    x = torch.randn(5, 33).to(dtype)
    check(lambda x: x.softmax(-1) * 3 + x.sum(0), x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(dtype):
    a, b = torch.randint(0, 100, (4, 9)).to(dtype), torch.randint(1, 9, (9,)).to(dtype)
    check(lambda a, b: (a + b, a // b, a % b, a & b, a.sum(0), a.amax(1), a > b, a / b), a, b)


def test_several_kernels_and_calls():
    check(lambda x, w: ((x @ w).relu().sum(-1), (x * 2) @ w), torch.randn(8, 8), torch.randn(8, 8))
    assert torch_stitch.counters()["library_calls"] == 2


@pytest.mark.parametrize(
    "build",
    [
        lambda: torch.randn(6, 4).t(),
        lambda: torch.randn(12, 8)[::2, 1::2],
        lambda: torch.randn(1, 4).expand(6, 4),
        lambda: torch.randn(6, 1).as_strided((6, 1), (1, 17)),
        lambda: torch.randn(6, 0),
        lambda: torch.randn(()),
        lambda: torch.randn(30).as_strided((6, 4), (2, 3)),
        lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ],
    ids=["transposed", "strided", "expanded", "odd", "empty", "scalar", "overlapping", "channels"],
)
def test_layouts_of_inputs(build):
    x = build()
    with torch.no_grad():
        got, expected = compile_strictly(lambda x: (x + 1).exp())(x), (x + 1).exp()
    torch.testing.assert_close(got, expected)
    assert got.stride() == expected.stride() or x.numel() <= 1 or x.dim() == 2
    torch._dynamo.reset()
    if x.numel():
        torch.testing.assert_close(compile_strictly(lambda x: x.sum())(x), x.sum())


def test_an_argument_is_changed_in_place():
    def fn(cache, x):
        cache.mul_(2).add_(x)
        return cache.sum()

    check(fn, torch.randn(4, 5), torch.randn(5))


def test_running_statistics():
    model = nn.BatchNorm1d(8)
    mine, theirs = copy.deepcopy(model), copy.deepcopy(model)
    x = torch.randn(16, 8)
    with torch.no_grad():
        torch.testing.assert_close(compile_strictly(mine)(x), theirs(x))
    torch.testing.assert_close(mine.state_dict(), theirs.state_dict())


def test_outputs_share_memory_as_in_eager():
    def fn(x):
        y = x + 1
        return y, y.clone(), x.clone(), x + 1, x.view(-1)

    x = torch.randn(3, 4)
    outputs = compile_strictly(fn)(x)
    pointers = [t.untyped_storage().data_ptr() for t in outputs]
    assert len(set(pointers)) == 5
    assert pointers[4] == x.untyped_storage().data_ptr()


def test_results_survive_the_next_call():
    compiled = compile_strictly(lambda x: x * 2)
    first = compiled(torch.ones(1000))
    second = compiled(torch.full((1000,), 3.0))
    assert first.eq(2).all() and second.eq(6).all()
    first.resize_(2000)
    assert second.eq(6).all()


def test_constants_of_the_graph():
    check(lambda x: x * torch.tensor(3.0) + torch.tensor([1.0, 2.0]), torch.randn(4, 2))


def test_a_dynamic_batch():
    def fn(x):
        return x.softmax(-1) + x.mean(0), x[1:], x.shape[0] * 2

    compiled = compile_strictly(fn, dynamic=True)
    for rows in (6, 9, 2):
        x = torch.randn(rows, 8)
        for got, expected in zip(compiled(x), fn(x)):
            torch.testing.assert_close(got, expected)
    assert torch_stitch.counters()["fallback_ops"] == 0


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_training_steps(name):
    torch.manual_seed(0)
    start, x = nn.Sequential(Block(), nn.ReLU(), Block()).eval(), torch.randn(6, 32)
    results = []
    for wrap in (compile_strictly, lambda model: model):
        model = copy.deepcopy(start)
        wrapped, optimizer = wrap(model), getattr(torch.optim, name)(model.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            wrapped(x).square().mean().backward()
            optimizer.step()
        results.append(model.state_dict())
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_training_with_a_dynamic_batch():
    layer = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.LayerNorm(8))
    compiled = compile_strictly(layer, dynamic=True)
    for rows in (6, 9, 2):
        x = torch.randn(rows, 8, requires_grad=True)
        (expected,) = torch.autograd.grad(layer(x).square().sum(), x)
        (got,) = torch.autograd.grad(compiled(x).square().sum(), x)
        torch.testing.assert_close(got, expected)
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_sizes_that_only_tensors_know():
    compiled = compile_strictly(lambda x, y: x * y.exp(), dynamic=True)
    for rows in (6, 9):
        x, y = torch.randn(rows, 3, requires_grad=True), torch.randn(rows, 3)
        compiled(x, y).sum().backward()
        torch.testing.assert_close(x.grad, y.exp())


def test_gradients_of_inputs():
    def fn(x, w):
        return F.cross_entropy(F.layer_norm(x @ w, (5,)), torch.tensor([0, 1, 4]))

    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    expected = torch.autograd.grad(fn(x, w), (x, w))
    got = torch.autograd.grad(compile_strictly(fn)(x, w), (x, w))
    torch.testing.assert_close(got, expected)


def test_graph_breaks():
    def fn(x):
        y = x.exp()
        torch._dynamo.graph_break()
        return y.sum(-1)

    check(fn, torch.randn(4, 5))


def test_a_cache_is_written_where_it_is():
    def fn(cache, place, row):
        cache.index_copy_(1, place, row)
        return cache.sum(-1)

    check(fn, torch.randn(3, 4, 5), torch.tensor([2]), torch.randn(3, 1, 5))
    assert torch_stitch.counters()["library_calls"] == 0


def test_extents_of_zero():
    def fn(x):
        return x.sum(0), x.sum(1), x.mean(1), torch.cat([x, x]), x.exp(), x.reshape(-1)

    check(fn, torch.randn(0, 5))


def test_foreach_ops_are_ops_on_each():
    def fn(xs, ys, scale):
        torch._foreach_add_(xs, ys, alpha=2)
        torch._foreach_mul_(xs, scale)
        torch._foreach_lerp_(xs, ys, 0.3)
        torch._foreach_addcdiv_(xs, ys, ys, [1.0, 2.0, 3.0])
        torch._foreach_maximum_(xs, 0.1)
        torch._foreach_copy_(ys, xs)
        torch._foreach_zero_(xs[:2])
        return *torch._foreach_norm(xs), *torch._foreach_pow(2.0, xs), *torch._foreach_abs(ys)

    xs, ys = ([torch.randn(n) for n in (3, 4, 5)] for _ in range(2))
    check(fn, xs, ys, torch.tensor(1.5))


def test_memory_formats_with_a_dynamic_batch():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1)).eval()
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    check(model, x, dynamic=True)


def test_views_by_calls_do_not_read_memory_that_is_used_again():
    def fn(x):
        y = (x + 1).unfold(0, 2, 1)
        z = torch.as_strided(x * 2, (3,), (2,), 1)
        return y * 2, z + 1, (x + 3).diagonal() * 2

    check(fn, torch.randn(6, 6))


def test_what_kernels_do_not_take():
    def fn(x):
        c = torch.complex(x, x + 1)
        return (c * c).abs(), x.to_sparse().to_dense() + 1

    check(fn, torch.randn(4, 4))


def test_higher_order_ops():
    def fn(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)) + 1

    check(fn, torch.ones(4))
    torch._dynamo.reset()
    check(fn, -torch.ones(4))


@pytest.mark.parametrize("fn", [torch.linalg.cholesky, torch.linalg.inv, torch.linalg.solve])
def test_calls_that_raise_for_what_they_find_keep_their_place(fn):
    """AOTAutograd orders them by tokens, which are None when it calls."""
    extra = (torch.ones(3, 1),) if fn is torch.linalg.solve else ()
    compiled = compile_strictly(lambda x: fn(x, *extra).exp() + 1)
    for training in (False, True):
        x = (torch.eye(3) * 2).requires_grad_(training)
        expected = fn(x, *extra).exp() + 1
        torch.testing.assert_close(compiled(x), expected)
        with pytest.raises(torch.linalg.LinAlgError):
            compiled(torch.zeros(3, 3, requires_grad=training))
    gradients = [torch.autograd.grad(y.sum(), x)[0] for y in (expected, compiled(x))]
    torch.testing.assert_close(*gradients)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0


@pytest.mark.parametrize("training", [False, True])
def test_regions_that_compile_once_are_stitched_where_they_are_called(training):
    weight = torch.randn(5)

    @torch.compiler.nested_compile_region
    def inner(x):
        return F.dropout(x.sin(), 0.0) * weight + x.mean(), torch.arange(5) + 1

    @torch.compiler.nested_compile_region
    def outer(x):
        return inner(x)[0].tanh()

    def in_a_row(x):
        y, line = inner(inner(x)[0] + 1)
        return y.cos() * line

    def within_each_other(x):
        return outer(outer(x) + 1)

    for fn in (in_a_row, within_each_other):
        x = torch.randn(4, 5, requires_grad=training)
        got, expected = compile_strictly(fn)(x), fn(x)
        torch.testing.assert_close(got, expected)
        if training:
            gradients = [torch.autograd.grad(y.square().sum(), x)[0] for y in (got, expected)]
            torch.testing.assert_close(*gradients)
    counters = torch_stitch.counters()
    assert counters["library_calls"] == 0 and counters["kernels"] > 0, counters


def test_regions_draw_masks_of_their_own_and_make_them_again():
    @torch.compiler.nested_compile_region
    def region(x):
        return F.dropout(x, 0.5)

    x = torch.ones(40, 50, requires_grad=True)
    a, b, c = compile_strictly(lambda x: (region(x), region(x), F.dropout(x, 0.5)))(x)
    for one, other in ((a, b), (b, c), (a, c)):
        assert 0.3 < (one != other).float().mean() < 0.7
    for y in (a, b, c):
        assert torch.autograd.grad(y.sum(), x, retain_graph=True)[0].equal(y)


def use_as_operand(x, i):
    n = i.item()
    return x * n + (n + 2), x.softmax(0) / n


def use_as_exponent(x, i):
    return x.softmax(0) ** i.item()


@pytest.mark.parametrize("fn", [use_as_operand, use_as_exponent])
def test_integers_that_tensors_hold_are_operands_of_kernels(fn):
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = compile_strictly(fn)
        try:
            torch.compile(fn, backend="aot_eager", fullgraph=True)(torch.rand(7), torch.tensor(3))
        except RuntimeError as error:  # torch 2.11 asks whether an exponent is 1, which none knows
            question = "Could not guard on data-dependent expression Eq(ToFloat(u0), 1.0)"
            assert question in str(error)
            with pytest.raises(type(error), match=re.escape(question)):
                compiled(torch.rand(7), torch.tensor(3))
            return
        torch._dynamo.reset()
        for n in (3, -5, 2**40):
            x, i = torch.rand(7), torch.tensor(n)
            torch.testing.assert_close(compiled(x, i), fn(x, i))
    counters = torch_stitch.counters()
    assert counters["kernels"] == 1 and counters["library_calls"] == 0
    assert counters["fallback_ops"] == 0


def test_a_size_as_exponent():
    compiled = compile_strictly(lambda x, n: (x + 1) ** n, dynamic=True)
    for n in (4, 5, 9):
        x = torch.rand(n)
        torch.testing.assert_close(compiled(x, n), (x + 1) ** n)


def test_jagged_tensors_are_stitched():
    """The size that stands for their rows is no number: it is not read."""

    def fn(x):
        return (x.softmax(-1) * 2).cos()

    compiled = compile_strictly(fn)
    for rows in ((3, 5), (2, 7, 4)):
        parts = [torch.randn(n, 4) for n in rows]
        x = torch.nested.nested_tensor(parts, layout=torch.jagged)
        torch.testing.assert_close(compiled(x).values(), fn(x).values())
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0


def test_threads_that_start_while_a_graph_is_compiled_have_the_processs_count():
    """What is asked of eager meanwhile runs on one thread, of this thread's alone."""
    before, counts, is_over = torch.get_num_threads(), set(), threading.Event()

    def watch():
        while not is_over.is_set():
            thread = threading.Thread(target=lambda: counts.add(torch.get_num_threads()))
            thread.start()
            thread.join()

    def fn(x):
        for _ in range(100):
            x = torch.nn.functional.softmax(x + 1, 0)
        return x

    torch.set_num_threads(2)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        torch.compile(fn, backend="stitch")(torch.randn(3, 4))
        assert torch.get_num_threads() == 2
    finally:
        is_over.set()
        watcher.join()
        torch.set_num_threads(before)
    assert counts == {2}


def test_two_threads():
    model, x = Block().eval(), torch.randn(4, 7, 32)
    with torch.no_grad():
        expected, compiled = model(x), compile_strictly(model)
        compiled(x)
        failures = []

        def work():
            with torch.no_grad():
                for _ in range(50):
                    if not torch.allclose(compiled(x), expected, atol=1e-5):
                        failures.append(1)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_counters_are_plain_and_reset():
    compile_strictly(lambda x: x.exp().sum())(torch.randn(4))
    counters = torch_stitch.counters()
    assert counters["stitched_ops"] >= 2 and counters["kernels"] >= 1
    assert counters["cache_hits"] + counters["cache_misses"] >= 1
    torch_stitch.reset_counters()
    assert set(torch_stitch.counters().values()) == {0}


def test_devices_have_targets():
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert backend.find_target({cpu}) == "cpu"
    assert backend.find_target(set()) == "cpu"
    for devices in ({meta}, {cpu, torch.device("cuda:0")}, {torch.device("xpu")}):
        with pytest.raises(_core.UnsupportedError, match=str(next(iter(devices)))):
            backend.find_target(devices)


def test_numbers_on_the_cpu_beside_a_gpu_do_not_count():
    with FakeTensorMode():
        x, number = torch.empty(3, device="meta"), torch.empty(())
        table = torch.empty(3)
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    assert {d.type for d in backend.devices_of(graph, [x, number])} == {"meta"}
    assert {d.type for d in backend.devices_of(graph, [x, table])} == {"meta", "cpu"}
    assert {d.type for d in backend.devices_of(graph, [number])} == {"cpu"}


def test_what_lies_on_the_cpu_beside_a_gpu_does_not_count():
    with FakeTensorMode():
        x, table, shape = (torch.empty(3, device=d) for d in ("cuda", "cpu", "meta"))
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    assert backend.devices_of(graph, [table, x]) == {torch.device("cuda:0")}
    assert len(backend.devices_of(graph, [table, x, shape])) == 3
