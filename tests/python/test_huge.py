"""Extents beyond 30, 31 and 32 bits, planned for a GPU: nothing is allocated in earnest or run."""

import pytest
import torch

from torch_stitch import explain

EXTENTS = [
    (torch.bfloat16, (1 << 30) + 3),
    (torch.int8, (1 << 31) + 1),
    (torch.int8, (1 << 32) + 5),
]
BYTES_PER_US = 3e6  # an H200 moves a little more


@pytest.mark.parametrize("dtype, extent", EXTENTS)
def test_extents_beyond_thirty_bits_are_planned_as_others(dtype, extent):
    (kernel,), (small,) = (
        explain(torch.neg, torch.empty(count, dtype=dtype), target="h200").plan["kernels"]
        for count in (extent, (1 << 24) + 3)
    )
    assert kernel["block"] == small["block"] >= 256
    assert kernel["grid"] <= extent // 256 + 1
    assert kernel["predicted_us"] < 3 * 2 * extent * dtype.itemsize / BYTES_PER_US


REDUCTIONS = {
    "sum": lambda x: x.float().sum(),
    "mean": lambda x: x.float().mean(),
    "two": lambda x: x.float().sum() / x.amax(),
    "rows": lambda x: x[None].expand(2, -1).float().amax(1),
}
# Primes but 2^30 + 1, of whose divisors 305 are nearest to the 264 pieces that fill an H200 twice,
# and 2^32 + 5, which 141 divide.
ODD = [(1 << 30) + 1, (1 << 30) + 3, (1 << 31) - 1, (1 << 32) + 5, (1 << 32) + 15, (1 << 33) - 9]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("extent", ODD)
def test_reductions_of_odd_extents_take_no_longer_than_of_even_ones(name, extent):
    def planned(extent):
        x = torch.empty(extent, dtype=torch.int8)
        return explain(REDUCTIONS[name], x, target="h200").plan["kernels"]

    kernels, others = planned(extent), planned(1 << extent.bit_length() - 1)
    scale = extent / (1 << extent.bit_length() - 1)
    for key in ("predicted_us", "bytes_planned"):
        found, expected = (sum(kernel[key] for kernel in all) for all in (kernels, others))
        assert found < 1.5 * scale * expected, key
