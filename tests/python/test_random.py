"""Random numbers inside kernels: their distribution, when they change, what is saved of them."""

import math
import threading
import warnings
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._functorch import partitioners
from torch.utils.checkpoint import checkpoint

import torch_stitch
from torch_stitch import backend

STRICT = {"strict": True}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a fallback warns
        yield


def compiled(fn, options=STRICT, **how):
    return torch.compile(fn, backend="stitch", options=options, **how)


@pytest.fixture
def graphs(monkeypatch):
    """Kind and FX graph of everything that is compiled."""
    seen, compile_graph = [], backend.compile_graph

    def keep(options, forward_device, kind, gm, example_inputs):
        seen.append((kind, gm.graph))
        return compile_graph(options, forward_device, kind, gm, example_inputs)

    monkeypatch.setattr(backend, "compile_graph", keep)
    return seen


def targets(graph):
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def checkpointed(region):
    return lambda *args: checkpoint(region, *args, use_reentrant=False)


def saved(graph, num_outputs):
    return [node.meta["val"] for node in graph.output_node().args[0][num_outputs:]]


def check_chi_square(counts, expected):
    counts, expected = counts.double(), torch.as_tensor(expected, dtype=torch.double)
    freedom = counts.numel() - 1
    found = ((counts - expected) ** 2 / expected).sum().item()
    assert abs(found - freedom) < 5 * math.sqrt(2 * freedom)


def check_uniform(x, bins=256):
    """Mean, variance, histogram, and no correlation with neighbours up to a warp and a row away."""
    x, count = x.flatten().double(), x.numel()
    assert 0 <= x.min() and x.max() < 1
    check_chi_square(torch.histc(x, bins, 0, 1), count / bins)
    assert abs(x.mean() - 0.5) < 5 / math.sqrt(12 * count)
    assert abs(x.var() - 1 / 12) < 5 * math.sqrt(1 / 180 / count)
    centred = x - 0.5
    for lag in (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        found = (centred[lag:] * centred[:-lag]).mean()
        assert abs(found) < 5 / 12 / math.sqrt(count - lag), lag


@pytest.mark.parametrize("shape", [(1 << 20,), (1000, 1048), (64, 33, 500)])
def test_uniform_numbers(shape):
    x = compiled(lambda: torch.rand(shape))()
    check_uniform(x)
    # 2^20 draws of 2^24 values: about n^2 / 2^25 pairs are equal; repeated lanes were far more.
    count = x.numel()
    assert count - x.unique().numel() < 1.2 * count**2 / 2**25


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_uniform_numbers_of_other_types_stay_below_one(dtype):
    x = compiled(lambda: torch.rand(1 << 20, dtype=dtype))()
    assert x.dtype == dtype
    assert 0 <= x.min() and x.max() < 1
    assert abs(x.double().mean() - 0.5) < 0.005
    if dtype == torch.float64:
        check_uniform(x)
        assert x.unique().numel() == x.numel()


def test_uniform_numbers_between_bounds():
    x = compiled(lambda x: x.clone().uniform_(-2, 6))(torch.empty(1 << 20))
    check_uniform((x + 2) / 8)


@pytest.mark.parametrize("options", [{}, {"simulate": "fast"}])
def test_normal_and_exponential_numbers(options):
    def fn(x):
        return torch.randn_like(x), x.clone().normal_(3, 2), x.clone().exponential_(0.5)

    normal, moved, waits = compiled(fn, STRICT | options)(torch.empty(1 << 18))
    points = torch.linspace(-3, 3, 49)
    inner = torch.histc(normal, 48, -3, 3)
    share = torch.special.ndtr(points.double()).diff()
    check_chi_square(inner, share * normal.numel())
    assert abs(moved.mean() - 3) < 0.02 and abs(moved.std() - 2) < 0.02
    assert abs(waits.mean() - 2) < 0.02 and waits.min() > 0
    # On a CPU a draw of a seed, and the normal numbers are calls of their own.
    assert torch_stitch.counters()["library_calls"] == (0 if options else 3)
    check_uniform(1 - torch.exp(-waits.double() / 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_bernoulli(dtype):
    p = torch.tensor([0, 0.25, 1], dtype=dtype)

    def fn(p, x):
        wide = p.expand(100_000, 3)
        return torch.bernoulli(wide), torch.bernoulli(x, 0.25), torch.empty_like(x).bernoulli_(p[1])

    rows, plain, by_tensor = compiled(fn)(p, torch.empty(100_000, dtype=dtype))
    assert rows.dtype == dtype
    assert (rows[:, 0] == 0).all() and (rows[:, 2] == 1).all()
    for x in (rows[:, 1], plain, by_tensor):
        assert set(x.unique().tolist()) == {0, 1}
        assert abs(x.double().mean() - 0.25) < 0.01


def test_comparisons_with_a_number_are_those_of_the_number_drawn():
    """Made of the word that it is drawn from; at, just above and just below a drawn number."""
    seed = partial(torch.manual_seed, 7)
    seed()
    drawn = compiled(lambda: torch.rand(1000))()[500].item()
    for bound in (drawn, drawn + 2.0**-25, drawn - 2.0**-25, 0.0, 1.0, 2.0**-24, 1 - 2.0**-24, 2.0):

        def fn(bound=bound):
            u = torch.rand(1000)
            return u, u >= bound, u > bound, u < bound, u <= bound

        torch._dynamo.reset()
        seed()
        u, *found = compiled(fn)()
        assert drawn in u
        for got, expected in zip(found, (u >= bound, u > bound, u < bound, u <= bound)):
            assert torch.equal(got, expected), bound



@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_dropout_drops_and_scales(p, dtype):
    x = torch.rand(300, 1000).add(1).to(dtype)
    y = compiled(lambda x: F.dropout(x, p))(x)
    kept = y != 0
    assert abs(kept.double().mean() - (1 - p)) < (0.01 if 0 < p < 1 else 1e-9)
    scaled = x * (1 / (1 - p)) if p < 1 else x * 0
    torch.testing.assert_close(y, torch.where(kept, scaled, 0), rtol=0, atol=0)


def test_layers_and_calls_have_masks_of_their_own():
    fn = compiled(lambda x: (F.dropout(x), F.dropout(x)))
    x = torch.ones(10_000)
    masks = [y != 0 for _ in range(2) for y in fn(x)]
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert abs((a == b).double().mean() - 0.5) < 0.03


def test_manual_seed_repeats():
    fn, x = compiled(lambda x: F.dropout(x) + torch.rand_like(x)), torch.ones(1000)
    first, second = fn(x), fn(x)
    torch.manual_seed(7)
    assert torch.equal(fn(x), first) and torch.equal(fn(x), second)
    state = torch.get_rng_state()
    third = fn(x)
    torch.set_rng_state(state)
    assert torch.equal(fn(x), third)


class Layers(nn.Module):
    def __init__(self, width=64, layers=3):
        super().__init__()
        self.ups = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x):
        for up, norm in zip(self.ups, self.norms):
            x = norm(x + F.dropout(F.gelu(F.dropout(up(x), 0.2)), 0.4))
        return x


def test_masks_are_made_again_in_backward_and_not_saved(graphs):
    x = torch.randn(32, 64, requires_grad=True)
    model = Layers()
    compiled(model)(x).square().sum().backward()
    (_, forward), (_, backward) = graphs
    kept = saved(forward, 1)
    assert not any(isinstance(t, torch.Tensor) and t.dtype == torch.bool for t in kept)
    assert [t.shape for t in kept if t.dtype == torch.int64] == [(2,)]
    assert targets(forward).count("aten.randint.low") == 1
    assert "aten.randint.low" not in targets(backward)
    assert targets(backward).count("torch_stitch.random.default") == 6
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_kernels_of_gpus_are_given_seeds_by_value():
    x = torch.ones(64, 65, requires_grad=True)
    dropped = compiled(lambda x: F.dropout(x, 0.5), STRICT | {"simulate": "fast"})
    y, other = dropped(x), dropped(x)
    y.sum().backward()
    assert torch.equal(y, x.grad), "the backward pass has the seed that its forward pass had"
    assert not torch.equal(y, other)
    assert torch_stitch.counters()["library_calls"] == 0
    torch.manual_seed(7)
    assert torch.equal(y, dropped(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_pass_where_values_did(dtype):
    x = torch.rand(257, 129).add(1).to(dtype).requires_grad_()
    y = compiled(lambda x: F.dropout(x * 2, 0.3))(x)
    y.sum().backward()
    assert torch.equal(y != 0, x.grad != 0)
    expected = torch.where(y != 0, torch.tensor(2 / 0.7).to(dtype), 0)
    torch.testing.assert_close(x.grad, expected.to(dtype), rtol=1e-2, atol=0)


def test_checkpointed_regions_make_the_same_numbers(graphs):
    def region(x, w):
        return F.dropout(torch.tanh(x @ w), 0.5) * torch.rand_like(x).add(1)

    def fn(x, w):
        return checkpoint(region, checkpoint(region, x, w, use_reentrant=False), w,
                          use_reentrant=False)  # fmt: skip

    def plain(x, w):
        return region(region(x, w), w)

    results = []
    for function in (fn, plain):
        torch.manual_seed(3)
        x, w = torch.ones(40, 40, requires_grad=True), torch.eye(40).requires_grad_()
        y = compiled(function)(x, w)
        y.sum().backward()
        results.append((y, x.grad, w.grad))
    torch.testing.assert_close(*results)
    assert [targets(graph).count("aten.randint.low") for _, graph in graphs] == [1, 0, 1, 0]


def attend(x, w):
    q, k, v = (x @ w).view(3, 40, 8, 2).transpose(1, 2).unbind(0)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).transpose(0, 1).flatten() * 2


def draw_tuples(x, w):
    dropped, mask = torch.native_dropout(x @ w, 0.5, True)
    return torch.where(mask, dropped.sin(), torch.randn(120, 16)) * torch.rand(120, 1)


@pytest.mark.parametrize("region", [attend, draw_tuples])
def test_checkpointed_random_calls_draw_again_what_eager_drew(region):
    """Their state is saved by calls whose results are tuples within tuples."""

    def fn(x, w):
        return checkpointed(region)(x.exp(), w).square()

    results, options = [], {"strict": True, "fallback_random": True}
    for function in (compiled(fn, options, fullgraph=True), fn):
        torch.manual_seed(3)
        x = torch.linspace(-1, 1, 1920).view(120, 16).requires_grad_()
        w = torch.eye(16).requires_grad_()
        y = function(x, w)
        after = torch.get_rng_state()
        y.sum().backward()
        results.append((y, x.grad, w.grad, after, torch.get_rng_state()))
    torch.testing.assert_close(*results)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


def test_checkpointed_attention_is_stitched():
    def region(x):
        return F.scaled_dot_product_attention(x, x, x).exp()

    results = []
    for function in (compiled(checkpointed(region), fullgraph=True), region):
        x = torch.linspace(-1, 1, 768).view(2, 3, 16, 8).requires_grad_()
        y = function(x)
        y.sum().backward()
        results.append((y, x.grad))
    torch.testing.assert_close(*results)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


@pytest.mark.parametrize("training", [False, True])
def test_fallback_random_is_eager_bit_for_bit(training):
    def fn(x):
        return F.dropout(x * 2, 0.5) + torch.rand_like(x), torch.randn(5), torch.bernoulli(x * x)

    results = []
    for function in (compiled(fn, {"strict": True, "fallback_random": True}), fn):
        torch.manual_seed(3)
        x = torch.linspace(0, 1, 50, requires_grad=training)
        y = function(x)
        if training:
            y[0].sum().backward()
        results.append((*y, x.grad, torch.get_rng_state()))
    torch.testing.assert_close(*results, rtol=0, atol=1e-6)


def draw_by_other_names(x):
    """The first waits for a kernel that would rather wait for the second."""
    first = torch._standard_gamma(x.sum(0).abs())
    second = torch.rand_like(x)
    third = torch.binomial(x.exp().sum(1).round(), torch.full((6,), 0.5))
    return first, second, third, x.amax() + (second @ x.t()).sum(0)


def attend_and_draw(x):
    q = x.exp().view(1, 1, 6, 8)
    return F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).square(), torch.rand(9)


@pytest.mark.parametrize("fn", [draw_by_other_names, attend_and_draw])
def test_fallback_random_draws_in_eagers_order(fn):
    results = []
    for function in (compiled(fn, {"strict": True, "fallback_random": True}), fn):
        torch.manual_seed(3)
        y = function(torch.linspace(-1, 1, 48).view(6, 8))
        results.append((*y, torch.get_rng_state()))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)
    assert results[0][1].equal(results[1][1])
    assert torch_stitch.counters()["kernels"] > 0


def test_other_backends_recompute_what_they_did():
    compiled(lambda x: F.dropout(x, 0.5))(torch.ones(4, requires_grad=True)).sum().backward()
    assert torch.ops.torch_stitch.random not in partitioners.pointwise_ops()


def test_generators_of_the_users_and_complex_numbers_are_torchs():
    generator = torch.Generator().manual_seed(5)
    table = backend.decompositions("h200")
    op = torch.ops.aten.bernoulli.p
    assert table[op](torch.ones(4), 0.5, generator=generator) is NotImplemented
    torch.manual_seed(3)
    x, y = compiled(lambda: (torch.rand(5, dtype=torch.complex64), torch.rand(5)))()
    torch.manual_seed(3)
    assert torch.equal(x, torch.rand(5, dtype=torch.complex64))
    assert y.dtype == torch.float32


def everything(x):
    y = F.dropout(x, 0.3) + torch.rand_like(x) * torch.bernoulli(torch.sigmoid(x))
    return y, y.sum(-1), y.transpose(0, 1).contiguous()


@pytest.mark.parametrize("options", [{"policy": "none"}, {"simulate": True}, {"simulate": "fast"}])
@pytest.mark.parametrize("shape", [(37, 53), (64, 256), (4, 5000)])
def test_every_schedule_makes_the_same_bits(shape, options):
    x, results = torch.randn(shape), []
    for chosen in (STRICT, STRICT | options):
        torch.manual_seed(3)
        results.append(compiled(everything, chosen)(x))
    (y, total, turned), (expected, expected_total, _) = results
    assert torch.equal(y, expected) and torch.equal(turned, y.transpose(0, 1))
    torch.testing.assert_close(total, expected_total, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("coarse", [False, True])
def test_without_kernels_the_bits_are_the_same(coarse):
    def fn(seed):
        return torch.ops.torch_stitch.random(seed, 0, [77, 13], coarse)

    seed = torch.tensor([-81985529216486896, (1 << 40) + (1 << 32) - 1])
    assert torch.equal(compiled(fn)(seed), fn(seed))
    assert torch_stitch.counters()["kernels"] == 1


SEED = torch.tensor([-81985529216486896, (1 << 40) + (1 << 32) - 1])
draw = torch.ops.torch_stitch.random

# Of numbers like x and of others: a kernel gives its draws the streams 0, 1, ... in their order.
USES = {
    "alone": lambda u, v, x: u * 1,
    "compared": lambda u, v, x: u >= 0.3,
    "two": lambda u, v, x: (u + v + x, v < 0.25),
    "behind others": lambda u, v, x: u[..., 3:] + x[..., 3:],
    "every second": lambda u, v, x: u[..., 1::2] + x[..., 1::2],
    "backwards": lambda u, v, x: u.flip(-1) + x,
    "turned": lambda u, v, x: (u + x).transpose(0, 1).contiguous(),
    "of turned": lambda u, v, x: u.transpose(0, 1) * 2 + x.transpose(0, 1).contiguous(),
    "joined": lambda u, v, x: torch.cat([x, u, x + 1, v * 2], -1),
    "padded": lambda u, v, x: F.pad(u, (1, 2)) * 2,
    "rolled": lambda u, v, x: torch.roll(u, 5, -1) + x,
    "largest": lambda u, v, x: ((u + x).amax(-1), (u + x).argmax(-1)),
    "largest of columns": lambda u, v, x: (u + x).amax(0),
    "counted": lambda u, v, x: ((u >= 0.3) + x.trunc()).sum(-1),
}


@pytest.mark.parametrize("name", USES)
def test_numbers_from_rows_have_the_same_bits(name):
    """A counter has four numbers, or eight: hosts make rows of them, which begin anywhere."""
    use = USES[name]
    for coarse, shapes in (
        (False, [(3, 5), (7, 301), (5, 64, 33), (9, 1000)]),
        (True, [(5, 3), (4, 4097), (33, 17), (3, 768)]),
    ):
        for shape in shapes:

            def fn(seed, x, coarse=coarse):
                return use(draw(seed, 0, x.shape, coarse), draw(seed, 1, x.shape, not coarse), x)

            x = torch.randn(shape)
            torch._dynamo.reset()
            torch.testing.assert_close(compiled(fn)(SEED, x), fn(SEED, x), rtol=0, atol=0)
    assert torch_stitch.counters()["fallback_ops"] == 0


@pytest.mark.parametrize("coarse", [False, True])
def test_rows_of_any_size_have_the_same_bits(coarse):
    def fn(seed, x):
        u = draw(seed, 0, x.shape, coarse)
        return u + x, u.amax(-1) if x.shape[-1] > 0 else u

    sizes = (0, 1, 3, 5, 31, 32, 33, 255, 256, 257, 515, 4097)
    dynamic = compiled(fn, dynamic=True)
    for size in sizes:
        x = torch.randn(3, size)
        torch.testing.assert_close(dynamic(SEED, x), fn(SEED, x), rtol=0, atol=0)
    for size in sizes:
        x = torch.randn(size)
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(fn)(SEED, x), fn(SEED, x), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [5, 257, 4097])
def test_masks_in_16_bits_are_those_of_the_numbers(size, dtype):
    def fn(seed, x):
        return torch.where(draw(seed, 0, x.shape, True) >= 0.25, x * 2, 0)

    x = torch.randn(3, size).to(dtype)[:, 1:]
    assert torch.equal(compiled(fn)(SEED, x), fn(SEED, x))


def test_memory_formats_are_kept():
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)

    def fn(x):
        return F.dropout(x), torch.rand_like(x), torch.randn_like(x, dtype=torch.float64)

    got = compiled(fn)(x)
    assert [y.stride() for y in got] == [y.stride() for y in fn(x)]


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (1, 5)])
def test_small_and_empty_tensors(shape):
    x = torch.ones(shape)
    y = compiled(lambda x: F.dropout(x) + torch.rand(shape) * 0)(x)
    assert y.shape == shape
    assert ((y == 0) | (y == 2)).all()


def test_sizes_that_change():
    fn = compiled(lambda x: F.dropout(x * 1, 0.5), dynamic=True)
    for rows in (6, 9, 4, 1000):
        x = torch.ones(rows, 33, requires_grad=True)
        y = fn(x)
        y.sum().backward()
        assert torch.equal(y, x.grad)
        assert 0 < (y == 0).double().mean() < 1


def test_two_threads():
    fn, x = compiled(lambda x: F.dropout(x)), torch.ones(5000)
    fn(x)
    found = [[], []]

    def work(results):
        results += [fn(x) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(results,)) for results in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    masks = torch.stack(found[0] + found[1])
    assert masks.unique(dim=0).shape[0] == 40


def test_the_plan_is_one_kernel():
    def fn(x, bias, residual, weight):
        y = F.dropout(x + bias, 0.1) + residual
        return F.layer_norm(y, (1024,), weight)

    shapes = ((512, 1024), (1024,), (512, 1024), (1024,))
    inputs = [torch.randn(shape, dtype=torch.bfloat16, requires_grad=True) for shape in shapes]
    plan = torch_stitch.explain(fn, *inputs, target="h200", training=True).plan
    assert [len(plan[part]["kernels"]) for part in ("forward", "backward")] == [1, 1]
    assert not any(plan[part]["library_calls"] for part in ("forward", "backward"))
