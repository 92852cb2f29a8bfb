"""Deviations from means that are large beside them: as exact as eager, by rule R10."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import compile_strictly, expect_as_exact

pytestmark = pytest.mark.usefixtures("fresh")

SHAPES = {(50, 409): (0, 1), (7, 1031): (0, 1), (4, 6, 130): (1, (0, 2)), (3000, 5): (0, (0, 1))}


@pytest.mark.parametrize("mean", [0.0, 1e4, -1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_deviations_of_far_values(shape, dtype, mean):
    x = torch.randn(shape, dtype=torch.float64).add(mean).to(dtype)
    for axes in SHAPES[shape]:

        def fn(x, axes=axes):
            return x.std(axes), x.var(axes, correction=0), torch.var_mean(x, axes, keepdim=True)

        # What is subtracted here is subtracted exactly: eager's own variance in fp64 is less exact.
        deviation, variance, (spread, rest) = fn(x.double() - mean)
        exact = deviation, variance, (spread, rest + mean)
        terms = x.numel() // x.sum(axes).numel()
        expect_as_exact(compile_strictly(fn)(x), fn(x), exact, terms)


def test_deviations_of_equal_values_are_zero():
    x = torch.full((33, 65), 1e6 + 0.1)
    compiled = compile_strictly(lambda x: (x.var(0), x.std(1), F.layer_norm(x, (65,))))
    assert all(result.eq(0).all() for result in compiled(x))


def test_what_is_not_finite_deviates_by_nan():
    x = torch.randn(9, 33)
    x[2, 3], x[5, 4] = float("inf"), float("nan")
    got, expected = compile_strictly(lambda x: x.var(1))(x), x.var(1)
    assert got.isnan().equal(expected.isnan())


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
