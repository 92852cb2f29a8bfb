"""Sizes and numbers that depend on data: only the calls that yield them are the library's."""

import math

import pytest
import torch
from torch.nn import functional as F

import torch_stitch
from tests.support.compare import compile_strictly, expect_torch_traces


@pytest.fixture(autouse=True)
def captured():
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    how = dict.fromkeys(("capture_scalar_outputs", "capture_dynamic_output_shape_ops"), True)
    with torch._dynamo.config.patch(how):
        yield


def scaled_positions(x):
    return x.nonzero() * 2 + 1


def masked_rows(x):
    y = x[x.sum(-1) > 0]
    return y.softmax(-1) + 1, y.shape[0], (x[x > 0].sin() * 2).sum()


def repeated(x):
    return x.repeat_interleave((x[:, 0] > 0).long() + 1, 0).sin() * 2


def different(x):
    u = x.detach().round().unique()
    return u * 2, u.numel(), x + u.shape[0]


def integer(x):
    return x * (x > 0).sum().item() + 1


def fraction(x):
    n = x.mean().item()
    return (x * n).sin() + n / 2


def truth(x):
    return x * (x.sum() > 0).item()


def returned(x):
    return x.amax().item(), (x > 0).sum().item(), x + 1, (x.sum() > 0).item()


def parts(x):
    n = (x > 0).sum().item()
    torch._check(n >= 0)
    torch._check(n <= x.numel())
    return x.flatten()[:n] * 2, torch.arange(n) + 1, x.flatten()[: n // 2].exp()


def made(x):
    n = (x > 0).sum().item()
    return torch.zeros(n, 3) + x.sum(), torch.ones(n * 2).cumsum(0).exp(), torch.full((n,), n / 3)


def given_to_calls(x):
    n = x.abs().amax().item()
    return F.threshold(x.sin(), n / 4, 0.0) + 1, torch.renorm(x.exp(), 2, 0, n) * 2


def chained(x):
    y = (x[x > 0] + 1).log()
    z = y[y > y.mean()] * 2
    return z.sum(), z.shape[0] + y.shape[0], (z[:, None] - z).abs().sum(0)


def joined(x):
    y, rows = x[x > 0], x[x[:, 0] > 0]
    one_line = torch.cat([y, torch.zeros(0), x[x.abs() > 0.5]]).sin()
    return one_line, torch.stack([y, y * 2], 1).exp(), torch.cat([rows, x, torch.zeros(0)]) + 1


def normalised(x):
    y, rows = x[x.abs() > 0.5], x[x[:, 0] > 0]
    return y.softmax(0), y.log_softmax(0), rows.softmax(0), F.layer_norm(rows, rows.shape[1:])


def split(x):
    rows = x[x[:, 0] > 0]
    first, second = rows.chunk(2, 1)
    return first.exp(), second.sin(), F.glu(rows), rows.sort(1)[0].exp(), rows.topk(2, 1)[0] + 1


def put_back(x):
    places = (x[:, 0] > 0).nonzero()[:, 0]
    rows, zeros, across = x[places] * 2, torch.zeros_like(x), places[:, None].expand(-1, x.shape[1])
    put = zeros.index_put((places,), rows), zeros.index_copy(0, places, rows)
    scattered = zeros.scatter(0, across, rows), zeros.scatter(0, across, 2.0)
    added = zeros.index_add(0, places, rows), zeros.scatter_reduce(0, across, rows, "amax")
    return *(y + 1 for y in (*put, *scattered, *added)), x.index_fill(0, places, 3.0) * 2


def filled_rows(x):
    value = x.sum() * 2  # whose gradient adds up over distinct rows
    return x.index_fill(0, (x[:, 0] > 0).long(), value), x.index_fill(1, torch.arange(3), value)


def repeated_rows(x):
    return x[x[:, 0] > 0].repeat(2, 1).exp(), x[x > 0].repeat(3, 1) * 2


def same_twice(x):
    return torch.where(x[x > 0] > 1, x[x > 0], 0) * 2, torch.stack([x[x > 0], x[x > 0].exp()], 1)


def rounded(x):
    n = x[0, 0].item()
    return x * round(n, 2), x + round(n * 3, 1), round(n, 3)


def bits(x):
    n = (x > 0).sum().item()
    return x * (n & 3) + (n ^ 5), x.flatten()[: n & 3] * 2, torch.ones(n | 1).cumsum(0) / 3, n & 3


def pieces(x):
    places = torch.stack((x[0, 0] > 0, (x[:2] > 0).sum()))
    pieces = torch.tensor_split(x.flatten(), torch.tensor([3, 9])) + x.tensor_split(places, 1)
    return *(piece * 2 for piece in pieces), (x * 3).t().tensor_split(torch.tensor([1]))[1].exp()


def slices(x):
    n = (x > 0).sum().item()
    return x[n % 4] * 2, x.t()[n % 4 :, 1:] * 2, x.flatten()[n - 3 : n + 7].exp(), x[:, -n:] + 1


CASES = [scaled_positions, masked_rows, repeated, different, integer, fraction, truth, returned,
         parts, made, given_to_calls, chained, joined, normalised, split, put_back, filled_rows,
         repeated_rows, same_twice, rounded, bits, pieces, slices]  # fmt: skip


def run(fn, x, trains):
    x = x.clone().requires_grad_(trains)
    results = fn(x)
    results = results if isinstance(results, tuple) else (results,)
    sums = [r.sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if sums:
        sum(sums).backward()
    return [*results, x.grad]


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", CASES)
def test_what_depends_on_data_is_a_call_and_the_rest_is_stitched(fn, dynamic, trains):
    expect_torch_traces(fn, torch.randn(4, 6), dynamic=dynamic)
    compiled = compile_strictly(fn, dynamic=dynamic)
    for seed, inputs in enumerate((torch.randn, torch.randn, lambda *s: -torch.rand(*s))):
        torch.manual_seed(seed)
        x = inputs(4 + seed * dynamic, 6)  # the last has nothing positive: all sizes are 0
        got, expected = run(compiled, x, trains), run(fn, x, trains)
        torch.testing.assert_close(got, expected, equal_nan=True)
        assert list(map(type, got)) == list(map(type, expected))
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


def test_assertions_on_data_raise_as_in_eager():
    def fn(x):
        n = (x > 0).sum().item()
        torch._check(n < 3, lambda: "too many")
        return x * n

    compiled = compile_strictly(fn)
    x = torch.tensor([1.0, -1.0, 2.0])
    assert compiled(x).equal(fn(x))
    for function in (fn, compiled):
        with pytest.raises(RuntimeError):
            function(x.abs())
    assert compiled(x).equal(fn(x))


def test_a_size_below_zero_raises_as_in_eager():
    compiled = compile_strictly(lambda x: torch.ones(x.sum().item()) * 2)
    assert compiled(torch.tensor([3, -1])).equal(torch.full((2,), 2.0))
    with pytest.raises(RuntimeError):
        compiled(torch.tensor([3, -4]))


def twice_cut(x):
    y = (x * 2)[..., : int(x.shape[-1] * 0.7)]
    return torch.cat([y, y], -1).exp() + 1


FRACTIONS = {
    "int": lambda x: (x * 2)[..., : int(x.shape[-1] * 0.7)].exp(),
    "round": lambda x: (x * 2)[..., : round(x.shape[-1] * 0.6)].exp(),
    "ceil": lambda x: (x * 2)[..., math.ceil(x.shape[-1] * 0.6) :].exp(),
    "root": lambda x: (x * 2)[..., : int(math.sqrt(x.shape[-1]))].exp() * math.sqrt(x.shape[-1]),
    "expand": lambda x: x[..., :1].expand(*x.shape[:-1], int(x.shape[-1] * 1.5)).sin() * 2,
    "twice": twice_cut,
    "flat": lambda x: (x * 2)[..., : int(x.shape[-1] * 0.7)].flatten().exp() + 1,
    "nearest": lambda x: F.interpolate(x * 2, scale_factor=1.7) + 1,
    "linear": lambda x: F.interpolate(x.sin(), scale_factor=1.5, mode="linear").exp(),
    "nearest 2d": lambda x: F.interpolate(x[None] * 2, scale_factor=1.7) + 1,
    "bilinear": lambda x: F.interpolate(x[None] * 2, scale_factor=1.5, mode="bilinear").exp(),
}


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", FRACTIONS)
def test_sizes_of_fractions_are_stitched(name, dynamic, trains):
    compiled = compile_strictly(FRACTIONS[name], dynamic=dynamic)
    for n in (8, 9, 5):
        x = torch.randn(2, 3, n)
        torch.testing.assert_close(run(compiled, x, trains), run(FRACTIONS[name], x, trains))
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


def test_a_size_of_a_fraction_is_no_call():
    compile_strictly(FRACTIONS["int"], dynamic=True)(torch.randn(2, 3, 8))
    assert torch_stitch.counters()["library_calls"] == 0


def test_a_size_of_a_number_that_the_caller_gives():
    def fn(x, share):
        return (x * 2)[:, : int(x.shape[1] * share)].exp()

    compiled = compile_strictly(fn, dynamic=True)
    for n, share in ((8, 0.5), (9, 0.7), (6, 0.9)):
        x = torch.randn(4, n)
        got, expected = (
            run(lambda x, f=f, share=share: f(x, share), x, True) for f in (compiled, fn)
        )
        torch.testing.assert_close(got, expected)


def repeated_by_number(x):
    n = (x > 0).sum().item()
    rows = x[:, :3].t().repeat(n, 2), x.sum(0).tile(2, n, 1), (x[x > 0] * 2).repeat(n)
    return *(y * 2 for y in rows), (x + 1).repeat(1, n, 1)


def norms(x):
    p = abs(x[0, 0].item()) + 1
    found = torch.linalg.vector_norm(x, p), x.norm(p, 1), F.normalize(x, p=p)
    return *(y * 2 for y in found), x.norm(2.5), x.norm(math.inf, 0)


def added_multiples(x):
    a, n = x[0, 0].item(), (x > 0).sum().item()
    return x.add(x, alpha=a) * 2, x.add(x * 2, alpha=n) * 2, x.add(x[0], alpha=a + n) * 2


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", [repeated_by_number, norms, added_multiples])
def test_counts_orders_and_multiples_may_depend_on_data(fn, dynamic):
    """In inference: torch's gradients ask what the numbers are."""
    compiled = compile_strictly(fn, dynamic=dynamic)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4 + seed * dynamic, 6)
        torch.testing.assert_close(compiled(x), fn(x))
    assert torch_stitch.counters()["fallback_ops"] == 0
