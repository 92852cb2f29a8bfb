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
    (kernel,) = explain(torch.neg, torch.empty(extent, dtype=dtype), target="h200").plan["kernels"]
    assert kernel["block"] == 256
    assert kernel["grid"] <= extent // 256 + 1
    assert kernel["predicted_us"] < 3 * 2 * extent * dtype.itemsize / BYTES_PER_US
