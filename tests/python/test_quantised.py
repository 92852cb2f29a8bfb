"""Rounding to a grid and back is stitched, bit for bit."""

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines the ops
from support.compare import check, compile_strictly, expect_equal, expect_stitched
from support.stitched import run_with_gradients

import torch_stitch

DECOMPOSED = torch.ops.quantized_decomposed
BYTES = [(-128, 127, torch.int8), (0, 255, torch.uint8)]


def draw(dtype=torch.float32):
    """Beyond the grid, between its points, and nowhere."""
    x = (torch.randn(6, 40) * 3).to(dtype)
    x[0], x[1, ::3] = torch.arange(40) * 0.25 - 5, -0.0
    x[2, 0], x[2, 1], x[2, 2], x[2, 3] = torch.inf, -torch.inf, 1e30, -1e30
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("grid", BYTES, ids=str)
def test_values_quantised_by_tensor_are_eagers(fresh, grid, dtype):
    def fn(x):
        q = DECOMPOSED.quantize_per_tensor(x, 0.05, 5, *grid)
        return q, DECOMPOSED.dequantize_per_tensor(q, 0.05, 5, *grid)

    check(fn, draw(dtype))


def test_values_quantised_by_numbers_in_tensors_are_eagers(fresh):
    """One call reads the zero point."""

    def fn(x, scale, zero):
        q = DECOMPOSED.quantize_per_tensor.tensor(x, scale, zero, *BYTES[0])
        return q, DECOMPOSED.dequantize_per_tensor.tensor(q, scale, zero, *BYTES[0])

    check(fn, draw(), torch.tensor(0.03), torch.tensor(3), copies=1)


@pytest.mark.parametrize("axis", [0, 1])
def test_values_quantised_by_channel_are_eagers(fresh, axis):
    def fn(x, scale, zero):
        q = DECOMPOSED.quantize_per_channel(x, scale, zero, axis, *BYTES[0])
        return q, DECOMPOSED.dequantize_per_channel(q, scale, zero, axis, *BYTES[0])

    x = draw()
    scale, zero = torch.rand(x.shape[axis]) + 0.01, torch.randint(-9, 9, (x.shape[axis],))
    check(fn, x, scale, zero)


def test_values_quantised_by_token_are_eagers(fresh):
    def fn(x, scale, zero):
        q = DECOMPOSED.quantize_per_token(x, scale, zero, *BYTES[0])
        return q, DECOMPOSED.dequantize_per_token(q, scale, zero, *BYTES[0], torch.float32)

    check(fn, draw(), torch.rand(6, 1) + 0.01, torch.randint(-9, 9, (6, 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_fake_quantisation_has_eagers_bits(fresh, dtype):
    def fn(x, scale, zero):
        return (
            torch.fake_quantize_per_tensor_affine(x, 0.05, 5, -128, 127),
            torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 255),
        )

    x = draw(dtype)
    x[3, 3] = torch.nan
    check(fn, x, torch.rand(40) + 0.01, torch.randint(0, 255, (40,), dtype=torch.int32))


def test_fake_quantisation_that_no_kernel_does_exactly_is_a_call(fresh):
    """Of fp64, beyond what f32 counts, by a zero point that is a float."""

    def fn(x, scale, zero):
        return (
            torch.fake_quantize_per_tensor_affine(x.double(), 0.05, 5, -128, 127),
            torch.fake_quantize_per_tensor_affine(x, 1e-9, 0, 0, 2**30),
            torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 255),
        )

    given = draw(), torch.rand(40) + 0.01, torch.rand(40) * 255
    expect_equal(compile_strictly(fn)(*given), fn(*given))
    assert torch_stitch.counters()["library_calls"] == 3


def test_fake_quantisation_lets_gradients_through_where_eager_does(fresh):
    def fn(x):
        return torch.fake_quantize_per_tensor_affine(x * 2, 0.03, 0, -128, 127)

    x = draw()
    expect_equal(run_with_gradients(compile_strictly(fn), x), run_with_gradients(fn, x))
    expect_stitched()
