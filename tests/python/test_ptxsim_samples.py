"""Kernels as people write them, with ragged tails: right results, and nothing to accuse.

Numbers are chosen so that torch's result is exact in any order of summation, unless said.
"""

from pathlib import Path

import pytest
import torch
from test_device_headers import needs_nvrtc

from torch_stitch import ptxsim

pytestmark = needs_nvrtc
SAMPLES = Path(__file__).parent / "ptxsim_kernels" / "samples"


def launch(name, kernel, grid, block, args, **how):
    """Runs samples/NAME.cu under all orders, in place on `args`."""
    result = ptxsim.run((SAMPLES / f"{name}.cu").read_text(), kernel, grid, block, args, **how)
    told = "\n".join(f"{finding.kind}: {finding.message}" for finding in result.findings)
    assert not result.findings, told


def integers(*sizes, low=-50, high=50, dtype=torch.int32):
    return torch.randint(low, high, sizes).to(dtype)


def zeros(*sizes, dtype=torch.int32):
    return torch.zeros(sizes, dtype=dtype)


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("n", [1, 31, 500, 1001])
def test_sum_by_shuffles(n):
    x, y = integers(n, dtype=torch.float32), torch.empty(3)
    launch("reduce_by_shuffle", "reduce", 3, 96, [x, y, n], inputs=[0], outputs=[1])
    same(y.sum(), x.sum())


@pytest.mark.parametrize("bins", [7, 256])
def test_histogram_by_atomics(bins):
    data, counts = integers(1003, low=0, high=256, dtype=torch.uint8), zeros(bins)
    args = [data, 1003, counts, bins]
    launch("histogram", "histogram", 3, 64, args, inputs=[0], shared_bytes=4 * bins)
    same(counts, torch.bincount(data.long() % bins, minlength=bins).int())


@pytest.mark.parametrize("height, width", [(32, 64), (45, 67), (1, 33)])
def test_tiled_transpose(height, width):
    x, y = torch.randn(height, width), torch.empty(width, height)
    grid = ((width + 31) // 32, (height + 31) // 32)
    launch("transpose", "transpose", grid, (32, 8), [x, y, width, height], inputs=[0], outputs=[1])
    same(y, x.t().contiguous())


def segment_sums(x, size):
    padded = torch.nn.functional.pad(x, (0, -len(x) % size)).view(-1, size)
    return padded.cumsum(1, dtype=torch.int32).flatten()[: len(x)]


def test_blelloch_scan():
    x, y = integers(300), zeros(300)
    launch("blelloch_scan", "scan", 3, 64, [x, y, 300], inputs=[0], outputs=[1], shared_bytes=512)
    same(y, segment_sums(x, 128) - x)


def test_scan_by_shuffles():
    x, y = integers(300), zeros(300)
    launch("warp_scan", "scan", 4, 96, [x, y, 300], inputs=[0], outputs=[1])
    same(y, segment_sums(x, 96))


def test_scan_that_looks_back():
    x, y = integers(500), zeros(500)
    args = [x, y, 500, zeros(1), zeros(4), zeros(4)]
    launch("lookback_scan", "scan", 4, 128, args, inputs=[0], outputs=[1])
    same(y, x.cumsum(0, dtype=torch.int32))


@pytest.mark.parametrize("steps", [1, 4])
def test_barrier_of_the_grid_in_software(steps):
    a = torch.randn(301)
    b, args = a.clone(), [a.clone(), torch.zeros(301), 301, steps, zeros(1)]
    launch("jacobi_grid_barrier", "jacobi", 2, 64, args, cooperative=True)
    for _ in range(steps):
        wide = torch.nn.functional.pad(b, (1, 1))
        b = (wide[:-2] + wide[2:]) * 0.5
    same(args[steps % 2], b)


@pytest.mark.parametrize("columns", [4, 100, 260])
def test_pipeline_of_asynchronous_copies(columns):
    x, y = integers(3, columns, dtype=torch.float32), torch.empty(3)
    launch("cp_async_pipeline", "row_sums", 3, 64, [x, y, columns], inputs=[0], outputs=[1])
    same(y, x.sum(1))


def fused(a, x, y, dtype):
    """Rounded once: with few bits in each number the sum is exact in fp32."""
    return (a.float() * x.float() + y.float()).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_packed_halves(dtype):
    kernel = "fma_f16" if dtype == torch.float16 else "fma_bf16"
    x, y, z = (integers(251, low=-200, high=200, dtype=dtype) / 64 for _ in range(3))
    a = torch.tensor([1.375], dtype=dtype)
    bits = int(a.view(torch.int16)) & 0xFFFF
    args = [x, y, z, bits << 16 | bits, 251]
    launch("packed_halves", kernel, 2, 64, args, inputs=[0, 1], outputs=[2])
    same(z, fused(a, x, y, dtype))


def test_conversions_to_halves_and_back():
    edges = [0.0, -0.0, 65519.9, 65520.0, 6e-8, 2.9e-8, 1e38, float("inf"), float("nan"), 1e-40]
    x = torch.cat([torch.tensor(edges), torch.randn(83) * 1000])
    half, brain = x.half(), x.bfloat16()
    args = [x, torch.empty_like(half), torch.empty_like(brain), torch.empty_like(x), len(x)]
    launch("convert_halves", "convert", 2, 64, args, inputs=[0], outputs=[1, 2, 3])
    same(args[1], half)
    same(args[2], brain)
    same(args[3], half.float())


def test_functions_local_arrays_and_switches():
    n, width = 101, 5
    x, y, z = integers(n, dtype=torch.float32), torch.empty(n), torch.empty(n)
    args = [x, y, z, n, width]
    launch("device_functions", "medians", 2, 64, args, inputs=[0], outputs=[1, 2])
    windows = torch.stack([x[(torch.arange(n) + j).clamp(max=n - 1)] for j in range(width)], 1)
    same(y, windows.median(1).values)
    weights, polynomial = (0.5, -1.0, 2.0, 0.25, 8.0), [torch.zeros(n)]
    for weight in weights:
        polynomial.append(polynomial[-1] * x + weight)
    at = torch.arange(n)
    a = torch.where(at % 6 > 0, polynomial[5], polynomial[2])
    cases = torch.stack([a + x, a - x, a * x, a.minimum(x), a.maximum(x), -a, x])
    same(z, cases[at % 7, at])


def test_image_on_a_grid_of_two_dimensions():
    height, width = 19, 45
    image = integers(height, width, low=0, high=256, dtype=torch.uint8)
    found = torch.empty_like(image)
    args = [image, found, width, height]
    launch("image_blur", "blur", (3, 3), (16, 8), args, inputs=[0], outputs=[1])
    wide = torch.nn.functional.pad(image[None].float(), (1, 1, 1, 1), "replicate")
    weights = torch.tensor([1.0, 2, 1])
    sums = torch.nn.functional.conv2d(wide[None], (weights[:, None] * weights)[None, None])[0, 0]
    same(found, ((sums + 8) / 16).floor().to(torch.uint8))


def test_dot_product_in_double_precision():
    n = 1001
    x, y = (integers(n, dtype=torch.float64) / 64 for _ in range(2))
    args = [x, y, torch.zeros(3, dtype=torch.float64), zeros(1), torch.empty(1).double(), n]
    launch("dot_double", "dot", 3, 128, args, inputs=[0, 1], outputs=[4])
    same(args[4][0], x @ y)
    assert args[3].item() == 0


@pytest.mark.parametrize("columns", [3, 257])
def test_first_of_the_largest(columns):
    x = integers(3, columns, low=0, high=9, dtype=torch.float32)
    most, place = torch.empty(3), torch.empty(3, dtype=torch.int64)
    launch("argmax", "argmax", 3, 64, [x, most, place, columns], inputs=[0], outputs=[1, 2])
    same(most, x.amax(1))
    same(place, (x == x.amax(1, keepdim=True)).float().argmax(1))


def test_maximum_by_compare_and_swap():
    x, most = torch.randn(333), torch.full((1,), float("-inf"))
    launch("cas_maximum", "maximum", 2, 64, [x, most, 333], inputs=[0])
    same(most[0], x.max())


def test_fair_lock():
    amounts, account = integers(100), zeros(2, dtype=torch.int64)
    launch("ticket_lock", "deposit", 2, 64, [zeros(2), amounts, account, 100], inputs=[1])
    same(account, torch.stack([amounts.sum(), torch.tensor(100)]))


def test_sum_by_the_last_block():
    x, y, count = integers(1003, dtype=torch.float32), torch.empty(1), zeros(1)
    args = [x, 1003, torch.zeros(5), count, y]
    launch("threadfence_reduction", "sum", 5, 128, args, inputs=[0], outputs=[4], shared_bytes=512)
    same(y[0], x.sum())
    assert count.item() == 0


def test_atomics_of_a_whole_warp():
    keys, counts = integers(250, low=0, high=9), zeros(9)
    launch("warp_aggregated", "count_keys", 4, 64, [keys, counts, 250], inputs=[0])
    same(counts, torch.bincount(keys, minlength=9).int())


def test_filter_by_ballot():
    x, kept, counts = integers(250), zeros(256), zeros(8)
    launch("warp_aggregated", "filter", 4, 64, [x, kept, counts, 250], inputs=[0], outputs=[2])
    for warp in range(8):
        part = x[32 * warp : 32 * warp + 32]
        positive = part[part > 0]
        assert counts[warp] == len(positive)
        same(kept[32 * warp : 32 * warp + len(positive)], positive)


def test_bitonic_sort():
    x, y = integers(200, low=-1000, high=1000), zeros(200)
    launch("bitonic_sort", "sort", 2, 64, [x, y, 200], inputs=[0], outputs=[1], shared_bytes=512)
    same(y, torch.cat([x[:128].sort().values, x[128:].sort().values]))


def test_tiled_matrix_product():
    m, n, k = 13, 21, 19
    a, b = integers(m, k, dtype=torch.float32), integers(k, n, dtype=torch.float32)
    c = torch.empty(m, n)
    args = [a, b, c, m, n, k]
    launch("matrix_product", "product", (3, 2), (8, 8), args, inputs=[0, 1], outputs=[2])
    same(c, a @ b)


def bits_of(v):
    return v & 0xFFFFFFFF


def signed(v):
    v = bits_of(v)
    return v - (1 << 32) if v >> 31 else v


def expected_tricks(a, b):
    u, v = bits_of(a), bits_of(b)
    bytes_of = u | v << 32
    permuted = sum(((bytes_of >> 8 * (0x3715 >> 4 * k & 7)) & 255) << 8 * k for k in range(4))
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    shift = a & 31
    values = [
        u.bit_count() + (32 - v.bit_length()) * 100, permuted, (a * b) >> 32, quotient,
        u % v if v else 0, int(f"{u:032b}"[::-1], 2), (a >> (b & 31)) ^ (u << (v & 15)),
        (v << shift | u >> (32 - shift)) if shift else v,
    ]  # fmt: skip
    return [signed(value) for value in values], a * b - (a << 20)


def test_integer_instructions():
    n = 99
    x, y = (integers(n, low=-(2**31), high=2**31) for _ in range(2))
    x[:6] = torch.tensor([0, -1, 2**31 - 1, -(2**31), 5, 32])
    y[:6] = torch.tensor([0, 1, -(2**31), 3, 0, -7])
    z, w = zeros(n, 8), zeros(n, dtype=torch.int64)
    launch("integer_tricks", "tricks", 2, 64, [x, y, z, w, n], inputs=[0, 1], outputs=[2, 3])
    wanted = [expected_tricks(a, b) for a, b in zip(x.tolist(), y.tolist())]
    same(z, torch.tensor([values for values, _ in wanted], dtype=torch.int32))
    same(w, torch.tensor([wide for _, wide in wanted]))
