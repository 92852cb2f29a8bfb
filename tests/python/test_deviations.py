"""Deviations from means that are large beside them, and means of large integers: as exact as
eager's, by rule R10."""

from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import compile_strictly, expect_as_exact

pytestmark = pytest.mark.usefixtures("fresh")

# The longer ones are cut into pieces, whose own means are put together.
SHAPES = {
    (50, 409): (0, 1),
    (7, 1031): (0, 1),
    (4, 6, 130): (1, (0, 2)),
    (3000, 5): (0, (0, 1)),
    (4096, 16): (0,),
    (8192, 64): (0,),
    (20000, 16): (0,),
    (50_000, 8): (0,),
    (20, 9000): (1,),
    (4, 300, 200): ((0, 1),),
    (64, 32, 64): ((0, 2),),
    (100_000,): (0,),
}
MEANS = [0.0, 100.0, 1e3, 1e4, -1e6]


def deviations(axes):
    def fn(x):
        return x.std(axes), x.var(axes, correction=0), torch.var_mean(x, axes, keepdim=True)

    return fn


def expect_exact_deviations(fn, compiled, draw, mean):
    """Of enough draws for an error that one rounding does not decide."""
    got, eager, exact = [], [], []
    while sum(results[0].numel() for results in exact) < 16:
        x = draw()
        # What is subtracted here is subtracted exactly: eager's own variance in fp64 is less exact.
        deviation, variance, (spread, rest) = fn(x.double() - mean)
        exact.append((deviation, variance, spread, rest + mean))
        for found, call in ((got, compiled), (eager, fn)):
            deviation, variance, pair = call(x)
            found.append((deviation, variance, *pair))
    together = [[torch.stack(x) for x in zip(*found, strict=True)] for found in (got, eager, exact)]
    expect_as_exact(*together, x.numel() // rest.numel())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_deviations_of_far_values(shape, dtype):
    for axes in SHAPES[shape]:
        fn = deviations(axes)
        compiled = compile_strictly(fn)
        for mean in MEANS:

            def draw(mean=mean):
                return torch.randn(shape, dtype=torch.float64).add(mean).to(dtype)

            expect_exact_deviations(fn, compiled, draw, mean)


def test_deviations_in_pieces_on_a_gpu():
    fn = deviations(0)
    compiled = compile_strictly(fn, options={"target": "h200", "simulate": True})
    for mean in MEANS[1:]:
        expect_exact_deviations(fn, compiled, lambda mean=mean: torch.randn(2048, 32) + mean, mean)


MEANS_ALONE = {(50, 4099): 0, (64, 300): 1, (7, 4096): 0, (1000, 64): 0, (3, 20000): 1}


@pytest.mark.parametrize("shape", MEANS_ALONE, ids=str)
def test_means_beside_deviations_are_rounded_once(shape):
    """A sum of 300 terms of 1e6 is not rounded to fp32 before it is divided."""
    axis = MEANS_ALONE[shape]
    for fn in (lambda x: torch.var_mean(x, axis)[1], lambda x: torch.std_mean(x, axis)[1]):
        compiled = compile_strictly(fn)
        for mean in (1e4, 3e5, 1e6):
            far = []
            for _ in range(6):
                x = torch.randn(shape, dtype=torch.float64).add(mean).float()
                far.append(torch.stack([compiled(x), fn(x)]) - fn(x.double()))
            ours, eagers = torch.cat(far, 1).square().mean(1).sqrt()
            assert ours < 1.8 * eagers, (mean, ours / eagers)


@pytest.mark.parametrize("shape", [(33, 65), (20000, 16), (4, 300, 64)], ids=str)
def test_deviations_of_equal_values_are_zero(shape):
    x = torch.full(shape, 1e6 + 0.1)
    compiled = compile_strictly(lambda x: (x.var(0), x.std(1), F.layer_norm(x, shape[-1:])))
    assert all(result.eq(0).all() for result in compiled(x))


@pytest.mark.parametrize("shape", [(9, 33), (9, 20000)], ids=str)
def test_what_is_not_finite_deviates_by_nan(shape):
    x = torch.randn(shape)
    x[2, 3], x[5, 4] = float("inf"), float("nan")
    got, expected = compile_strictly(lambda x: x.var(1))(x), x.var(1)
    assert got.isnan().equal(expected.isnan())


LONG = [((5000, 64), 0), ((64, 5000), 1), ((64, 1023), 1), ((31, 256), 0), ((40, 37, 60), (0, 2))]


@pytest.mark.parametrize(("shape", "axes"), LONG, ids=str)
def test_means_of_large_integers(shape, axes):
    x = torch.randint(2**50, shape)
    sums, terms = x.sum(axes), x.numel() // x.sum(axes).numel()

    def far(means):
        pairs = zip(means.tolist(), sums.tolist(), strict=True)
        return sum((Fraction(mean) - Fraction(total, terms)) ** 2 for mean, total in pairs)

    got = compile_strictly(lambda x: x.mean(axes))(x.double())
    assert far(got) <= 4 * far(x.double().mean(axes))


@pytest.mark.parametrize("shape", [(200, 3), (3, 200)], ids=str)
def test_sums_in_fp64_keep_what_is_not_finite(shape):
    x = torch.randn(shape, dtype=torch.float64)
    for at, value in ((3, torch.inf), (3, -torch.inf), (5, torch.nan)):
        x.flatten()[at] = value
        for axis in (0, 1):
            torch._dynamo.reset()
            got = compile_strictly(lambda x, axis=axis: x.sum(axis))(x)
            torch.testing.assert_close(got, x.sum(axis), equal_nan=True)


def test_running_statistics_are_rounded_once():
    states, wide = [], torch.float64
    for dtype, backend in ((torch.float32, "stitch"), (torch.float32, "eager"), (wide, "eager")):
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm2d(2000)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        x = torch.randn(4, 2000, 3, 3)
        torch.compile(norm.to(dtype), backend=backend)(x.to(dtype))
        states.append(torch.stack([norm.running_mean, norm.running_var]))
    ours, eager, exact = states
    far = [(x.double() - exact).square().mean(1).sqrt() for x in (ours, eager)]
    assert (far[0] <= 0.8 * far[1]).all(), far


def test_normalised_channels_keep_no_mean():
    """What fp32 drops as it subtracts a small mean, each element lacks: products add that up."""
    ours = compile_strictly(lambda x: F.batch_norm(x, None, None, training=True))
    for offset in (0, 0.3, 100):
        x = torch.randn(4, 200, 16, 16) + offset
        eager = F.batch_norm(x, None, None, training=True)
        left = [y.double().mean((0, 2, 3)).square().mean().sqrt() for y in (ours(x), eager)]
        assert left[0] <= 1.1 * left[1], (offset, left)


@pytest.mark.parametrize("first", [0.0, 1e6, -3e4])
def test_deviations_from_an_element_that_is_far_from_all_others(first):
    """One pass takes them from the first, which is at most sqrt(n) deviations from the mean."""

    def fn(x):
        return F.batch_norm(x, None, None, training=True), x.double().var((0, 2, 3))

    compiled, got, eager, exact = compile_strictly(fn), [], [], []
    for _ in range(4):
        x = torch.randn(64, 8, 7, 9) + 100
        x[0, :, 0, 0] = first
        got.append(compiled(x))
        eager.append(fn(x))
        exact.append(fn(x.double()))
    together = [[torch.stack(y) for y in zip(*found, strict=True)] for found in (got, eager, exact)]
    expect_as_exact(*[found[:1] for found in together], 64 * 63)
    torch.testing.assert_close(together[0][1], together[2][1], rtol=1e-11, atol=0)
