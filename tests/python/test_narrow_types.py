"""Floats of 8 bits and unsigned integers: what eager can do with them is stitched, bit for bit."""

import pytest
import torch

import torch_stitch
from tests.support.compare import check
from torch_stitch.fx_ops import DTYPES

pytestmark = pytest.mark.usefixtures("fresh")

FLOATS = [d for d in (torch.float8_e4m3fn, torch.float8_e5m2) if d in DTYPES]  # torch 2.11: one
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
TARGETS = ["cpu", pytest.param("h200", marks=pytest.mark.simulated)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_code_is_read_and_every_f32_near_one_is_rounded_as_by_eager(dtype, target):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    exact = codes.float()
    halves = (exact[1:] + exact[:-1]) / 2
    numbers = torch.cat([exact, halves, halves * (1 + 2**-20), halves * (1 - 2**-20)])
    numbers = torch.cat([numbers, torch.tensor([1e9, -1e9, 447.9, 463.9, 464.0, 479.9, 1e-30])])
    check(lambda c: (c.float(), c.to(torch.bfloat16)), codes, options={"target": target})
    check(lambda x: (x.to(dtype), (x * 0.5).to(dtype).half()), numbers, options={"target": target})
    check(lambda x: x.to(dtype), numbers.double(), options={"target": target})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_are_scaled_and_quantised_in_one_kernel(dtype, target):
    largest = torch.finfo(dtype).max

    def quantise(x):
        scale = x.abs().amax(-1, keepdim=True) / largest
        return (x / scale).clamp(-largest, largest).to(dtype), scale

    check(quantise, torch.randn(9, 70), options={"target": target})
    assert torch_stitch.counters()["kernels"] == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_constants_and_parts(dtype):
    def fn(x):
        y = x.to(dtype)
        filled = torch.full_like(y, 3.3), torch.full_like(y, -1.7e-3), torch.zeros_like(y)
        parts = torch.cat([y, y])[1:], y[None].expand(2, -1).t(), y == y, y[torch.tensor([2, 0])]
        return *filled, *parts

    check(fn, torch.randn(7) * 300)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_integers(dtype, target):
    top = 2 ** (8 * dtype.itemsize) - 1
    x = torch.tensor([0, 1, 2, 3, 77, top // 2, top // 2 + 1, top - 1, top], dtype=dtype)

    def fn(x):
        bits = x & 3, x | x, x * 3, x == 2, x.bool(), x.to(torch.uint8), x.to(torch.int16)
        wide = x.to(torch.float64), x.float(), x.sum(), x.to(torch.int64), torch.cat([x, x])
        return *bits, *wide, (x * x).to(torch.uint32), torch.full_like(x, 7), x / 2

    check(fn, x, options={"target": target})
