"""Argmax and argmin, beside maxima, on ptxsim: ties, NaN, infinities, several in one kernel."""

import math

import pytest
import torch
from test_device_headers import needs_nvrtc

from tests.support.compare import compile_strictly

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("shape", [(300, 64), (7, 257), (5, 33, 8)], ids=str)
def test_places_are_those_of_the_first(shape, dtype):
    n = torch.Size(shape).numel()
    x = torch.arange(n).mul(7).remainder(11).reshape(shape).to(dtype)
    if dtype.is_floating_point:
        x[0], x.view(-1)[n // 2] = -math.inf, math.nan

    def fn(x):
        found = [f(x, dim) for f in (torch.argmax, torch.argmin) for dim in (None, 0, -1)]
        found += x.flip(0).argmax(0), x.mT.argmin(-1), x.mT.argmax()
        return *found, x.amax(0), x.amin(-1), (x > 3).any(0), (x > 3).all(-1)

    compiled = compile_strictly(fn, options={"target": "h200", "simulate": "fast"})
    for got, expected in zip(compiled(x), fn(x), strict=True):
        assert torch.equal(got.double().nan_to_num(), expected.double().nan_to_num())
