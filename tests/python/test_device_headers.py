"""The device headers compile as one text for every architecture and for the host."""

import ctypes
import glob
import importlib.util
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import torch

from torch_stitch import _core, ptxsim

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "csrc" / "device" / "stitch").glob("*.cuh"))
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
HOST_FLAGS = (
    "-std=c++20 -O3 -march=native -fopenmp-simd -ffp-contract=off -fno-math-errno"
    " -fno-trapping-math -Wall -Wextra -Werror -shared -fPIC"
).split()

UNARY_ANY = "neg abs sign square floor ceil trunc round relu".split()
UNARY_FLOAT = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh"
    " tanh asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid frac"
).split()
UNARY_BOOL = "isnan isinf isfinite signbit logical_not".split()
BINARY_ANY = "add sub mul div_floor div_trunc remainder fmod pow maximum minimum fmax fmin".split()
BINARY_FLOAT = "div atan2 hypot copysign nextafter".split()
BINARY_INT = "bitwise_and bitwise_or bitwise_xor shift_left shift_right".split()
BINARY_BOOL = "eq ne lt le gt ge logical_and logical_or logical_xor".split()


def load_embed_device():
    spec = importlib.util.spec_from_file_location("embed_device", ROOT / "tools/embed_device.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


embed_device = load_embed_device()
TEXT = embed_device.join_headers(HEADERS)


def load_nvrtc():
    spec = importlib.util.find_spec("nvidia")
    for base in spec.submodule_search_locations if spec else ():
        for builtins in glob.glob(f"{base}/*/lib/libnvrtc-builtins.so*"):
            # The wheel's libnvrtc has no rpath: its companion must be loaded first.
            ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
            folder = pathlib.Path(builtins).parent
            return ctypes.CDLL(str(next(folder.glob("libnvrtc.so*"))))
    return None


NVRTC = load_nvrtc()
needs_nvrtc = pytest.mark.skipif(
    NVRTC is None, reason="NVRTC is missing: pip install nvidia-cuda-nvrtc"
)


def read_result(program, name):
    size = ctypes.c_size_t()
    assert getattr(NVRTC, f"nvrtcGet{name}Size")(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(NVRTC, f"nvrtcGet{name}")(program, buffer) == 0
    return buffer.raw[: size.value]


def compile_cuda(kernels, architecture):
    """PTX of the device text followed by kernels; the cubin must come out too."""
    source = (TEXT + "namespace stitch {\n" + kernels + "}\n").encode()
    program = ctypes.c_void_p()
    assert NVRTC.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}", "--fmad=false", "--std=c++20"]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = NVRTC.nvrtcCompileProgram(program, len(options), array)
    log = read_result(program, "ProgramLog").decode().rstrip("\0\n")
    assert status == 0, log
    assert log == "", log
    assert len(read_result(program, "CUBIN")) > 0
    ptx = read_result(program, "PTX").decode()
    NVRTC.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx


def elementwise_kernel(dtype):
    is_float, is_bool = dtype in ("f32", "f64"), dtype == "bool"
    unary = [] if is_bool else UNARY_ANY + UNARY_FLOAT * is_float + ["bitwise_not"] * (not is_float)
    binary = "add mul maximum minimum bitwise_and bitwise_or bitwise_xor".split() * is_bool
    if not is_bool:
        binary = BINARY_ANY + (BINARY_FLOAT if is_float else BINARY_INT)
    storage = "boolean" if is_bool else dtype
    lines = [f"const {dtype} a = convert<{dtype}>(x[i]);"]
    lines += [f"const {dtype} b = convert<{dtype}>(load_if(i < n, y, i));"]
    results = [f"{name}(a)" for name in unary] + [f"{name}(a, b)" for name in binary]
    results += ["select(lt(a, b), a, b)", "clamp(a, b, a)"]
    results += [] if is_bool else ["fma(a, b, a)"]
    flags = [f"{name}(a)" for name in (["logical_not"] if is_bool else UNARY_BOOL)]
    flags += [f"{name}(a, b)" for name in BINARY_BOOL]
    lines += [f"z[i + {k} * n] = convert<{storage}>({r});" for k, r in enumerate(results)]
    lines += [f"f[i + {k} * n] = convert<boolean>({r});" for k, r in enumerate(flags)]
    return (
        f"STITCH_KERNEL(all_{dtype}, 128, 1)(const {storage}* x, const {storage}* y, {storage}* z,"
        " boolean* f, i64 n) {\n  const i64 i = block_index() * 128 + tid();\n  "
        + "\n  ".join(lines)
        + "\n}\n"
    )


DTYPES = ("f32", "f64", "u8", "i8", "i16", "i32", "i64", "bool")

CONVERSIONS = """
template <class From> STITCH_DEVICE void convert_all(From x, i64 i, i64 n, f16* a, bf16* b, f32* c,
                                                     f64* d, i64* e, boolean* g) {
  a[i] = convert<f16>(x); b[i] = convert<bf16>(x); c[i] = convert<f32>(x); d[i] = convert<f64>(x);
  e[i] = convert<u8>(x) + convert<i8>(x) + convert<i16>(x) + convert<i32>(x) + convert<i64>(x);
  g[i] = convert<boolean>(x);
}
STITCH_KERNEL(conversions, 128, 1)(const f16* s, const bf16* t, const f32* u, const f64* v,
    const i64* w, const boolean* x, f16* a, bf16* b, f32* c, f64* d, i64* e, boolean* g, i64 n) {
  const i64 i = block_index() * 128 + tid();
  convert_all(s[i], i, n, a, b, c, d, e, g);
  convert_all(t[i], i + n, n, a, b, c, d, e, g);
  convert_all(u[i], i + 2 * n, n, a, b, c, d, e, g);
  convert_all(v[i], i + 3 * n, n, a, b, c, d, e, g);
  convert_all(w[i], i + 4 * n, n, a, b, c, d, e, g);
  convert_all(x[i], i + 5 * n, n, a, b, c, d, e, g);
  c[i] += round_to<f16>(u[i]) + round_to<bf16>(u[i]);
}
"""

VECTORS = """
STITCH_KERNEL(vectors, 128, 1)(const bf16* x, f32* y, const i64* index, int* error, i64 n) {
  const i64 i = block_index() * 128 + tid();
  const Vec<bf16, 8> in = load_vec<8>(x + 8 * check_index(index[i], n, error));
  Vec<f32, 8> out;
  STITCH_UNROLL
  for (int k = 0; k < 8; ++k) out.v[k] = exp(convert<f32>(in.v[k]));
  store_vec(y + 8 * i, out);
}
"""

REDUCTIONS = """
STITCH_KERNEL(reductions, 256, 1)(const f32* x, f32* y, i64* z, boolean* b) {
  STITCH_SHARED(f32, shared, 256);
  STITCH_SHARED(f64, wide, 8);
  STITCH_SHARED(Indexed<f32>, indexed, 256);
  const f32 v = x[tid()];
  f32 sum = all_reduce<Sum, 0u, 256>(v, shared);
  sum += all_reduce<Sum, 31u, 256>(v, shared);
  sum += all_reduce<Prod, 7u, 256>(v, shared);
  sum += all_reduce<Max, 255u, 256>(v, shared);
  sum += all_reduce<Min, 0xe8u, 256>(v, shared);
  sum += convert<f32>(all_reduce<Sum, 255u, 256>(convert<f64>(v), wide));
  y[tid()] = sum;
  z[tid()] = all_reduce<ArgMax, 0x61u, 256>(Indexed<f32>{v, tid()}, indexed).index +
             all_reduce<ArgMin, 31u, 256>(Indexed<f32>{v, tid()}, indexed).index;
  STITCH_SHARED(bool, flags, 8);
  b[tid()] = convert<boolean>(all_reduce<Any, 255u, 256>(v > 0.0f, flags) &
                              all_reduce<All, 0xffu, 256>(v < 9.0f, flags));
}
"""


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_compiles(dtype, architecture):
    ptx = compile_cuda(elementwise_kernel(dtype), architecture)
    assert f".entry all_{dtype}(" in ptx


@needs_nvrtc
def test_own_f32_functions_use_no_local_memory_and_no_approximation():
    own = "expm1 log log2 log10 log1p sin cos tan erf".split()
    body = "".join(f"y[i + {k} * n] = {name}(v); " for k, name in enumerate(own))
    ptx = compile_cuda(
        "STITCH_KERNEL(own, 128, 1)(const f32* x, f32* y, i64 n) {"
        f" const i64 i = tid(); const f32 v = x[i]; {body} }}\n",
        "sm_90a",
    )
    assert ".local" not in ptx
    assert not any(line.startswith((".global", ".const")) for line in ptx.splitlines())
    assert ".approx" not in ptx
    assert ".ftz" not in ptx


# Name: what the reference adds, units in the last place by the PTX manual's bounds of ex2 and rcp.
APPROXIMATE = {
    "exp": (lambda x: x.exp(), 2.75),
    "exp2": (lambda x: x.exp2(), 2),
    "sigmoid": (lambda x: x.sigmoid(), 5),
    "tanh": (lambda x: x.tanh(), 2.5),
    "sinh": (lambda x: x.sinh(), 3),
    "cosh": (lambda x: x.cosh(), 3),
    "erfc": (lambda x: torch.erfc(x), 6),
    "rsqrt": (lambda x: x.rsqrt(), 2.2),
}
# Name: (the function, below what size of the result the error of that size counts).
SHORT = {
    "exp_short": (torch.exp, 2.0**-126),
    "exp_vanishing": (torch.exp, 2.0**-126),
    "sigmoid_short": (torch.sigmoid, 2.0**-126),
    "tanh_short": (torch.tanh, 0),
    "exp_short({}, 0.75f)": (lambda x: (0.75 * x).exp(), 2.0**-126),
    "sigmoid_short({}, -3)": (lambda x: (-3 * x).sigmoid(), 2.0**-126),
    "erf_plus_one_short": (lambda x: torch.erfc(-x), 2.0**-8),
}


def sample():
    """Floats of all exponents, many of those between -105 and 105, and edges."""
    bits = np.arange(0, 1 << 32, 160009, dtype=np.uint64).astype(np.uint32)
    edges = [0.0, -0.0, 1.0, -1.0, 88.72283, 88.72284, -87.33, -87.34, -103.97, -104.0, 1e-40]
    edges += [-1e-40, 0.6, -0.6, 0.0625, 3.95, 5.0, -5.0, 1e38, -1e38, 3.4e38, 1e-38, 2.0**-126]
    edges += [np.inf, -np.inf, np.nan]
    dense = np.linspace(-105, 105, 30001), np.linspace(-5, 5, 20001)
    parts = bits.view(np.float32), np.float32(edges), *map(np.float32, dense)
    return torch.from_numpy(np.concatenate(parts))


def run_on_ptxsim(function, x):
    """f32 results where approximate instructions err."""
    place = "const i64 i = block_index() * 256 + tid(); "
    kernel = f"STITCH_KERNEL(one, 256, 1)(const f32* x, f32* y, i64 n) {{ {place}"
    call = (function if "{}" in function else function + "({})").format("x[i]")
    ptx = compile_cuda(f"{kernel} if (i < n) y[i] = {call}; }}", "sm_90a")
    y, n = torch.empty_like(x), x.numel()
    args = (x.clone(), y, n)
    ptxsim.run(ptx, "one", (n + 255) // 256, 256, args, noise=True, seed=5, orders=1, checks=False)
    return y


def errors_in_units(got, exact):
    """Of f32; infinite where kind or, of zeros, sign differ."""
    highest = torch.tensor(2.0**128, dtype=torch.float64)
    exponent = torch.frexp(exact)[1].double()
    unit = torch.exp2((exponent - 24).clamp(-149, 104))
    error = (got.double().clamp(-highest, highest) - exact.clamp(-highest, highest)).abs() / unit
    error[exact.isnan() != got.isnan()] = torch.inf
    error[exact.isnan() & got.isnan()] = 0
    error[(exact == 0) & ((got != 0) | (got.signbit() != exact.signbit()))] = torch.inf
    return error


@needs_nvrtc
@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_functions_stay_within_their_bound(name):
    function, bound = APPROXIMATE[name]
    x = sample()
    errors = errors_in_units(run_on_ptxsim(name, x), function(x.double()))
    worst = errors.argmax()
    assert errors[worst] <= bound, (x[worst], errors[worst])


@needs_nvrtc
@pytest.mark.parametrize("name", SHORT)
def test_short_functions_are_right_for_16_bits(name):
    function, smallest = SHORT[name]
    x = sample()
    got, exact = run_on_ptxsim(name, x).double(), function(x.double())
    largest = torch.finfo(torch.float32).max
    is_same = (got == exact) | (got.isnan() & exact.isnan()) | (got.isinf() & (exact > largest))
    is_same |= (exact.abs() <= smallest) & (got.abs() <= smallest) & (smallest < 2.0**-100)
    errors = torch.where(is_same, 0, (got - exact).abs() / exact.abs().clamp(min=smallest))
    worst = errors.nan_to_num(torch.inf).argmax()
    assert errors[worst] <= 2.0**-16, (x[worst], got[worst], exact[worst])
    assert name != "exp_short" or torch.all(got[exact > 2.0**-147] > 0)  # such may be a divisor
    zeros = x == 0
    assert torch.equal(got[zeros].signbit(), exact[zeros].signbit())


QUOTIENTS = """
STITCH_KERNEL(quotients, 256, 1)(const f32* a, const f32* b, f32* y, f32* z, i64 n) {
  const i64 i = block_index() * 256 + tid();
  if (i >= n) return;
  y[i] = div_by(a[i], invert(b[i]));
  z[i] = div_short(a[i], b[i]);
}
"""


@needs_nvrtc
def test_quotients_without_a_branch_hold_over_the_whole_range():
    generator = torch.Generator().manual_seed(7)
    bits = torch.randint(-(2**31), 2**31, (2, 60000), dtype=torch.int64, generator=generator)
    a, b = bits.to(torch.int32).view(torch.float32)
    edges = torch.tensor([0.0, -0.0, 1.0, 3.4e38, 1e-40, torch.inf, -torch.inf, torch.nan])
    a = torch.cat([a, edges.repeat_interleave(8)])
    b = torch.cat([b, edges.repeat(8)])
    y, z, n = torch.empty_like(a), torch.empty_like(a), a.numel()
    ptx = compile_cuda(QUOTIENTS, "sm_90a")
    how = {"noise": True, "seed": 5, "orders": 1, "checks": False}
    ptxsim.run(ptx, "quotients", (n + 255) // 256, 256, (a, b, y, z, n), **how)
    exact = a.double() / b.double()
    underflows = (exact.abs() <= 2.0**-150) & (exact != 0)
    for got in (y, z):
        errors = errors_in_units(got, exact)
        errors[underflows & (got == 0)] = 0
        worst = errors.argmax()
        assert errors[worst] <= 2.01, (a[worst], b[worst], got[worst])


@needs_nvrtc
def test_short_quotients_of_bf16_are_rounded_as_exact_ones():
    # Two bf16 have no quotient within 2^-17 of the middle between two others.
    a = (1 + torch.arange(128) / 128).repeat_interleave(128)
    b = (1 + torch.arange(128) / 128).repeat(128)
    y, z, n = torch.empty_like(a), torch.empty_like(a), a.numel()
    ptx, how = compile_cuda(QUOTIENTS, "sm_90a"), {"noise": True, "orders": 1, "checks": False}
    ptxsim.run(ptx, "quotients", n // 256, 256, (a, b, y, z, n), **how)
    for got in (y, z):
        assert torch.equal(got.bfloat16(), (a / b).bfloat16())


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_conversions_vectors_and_reductions_compile(architecture):
    ptx = compile_cuda(CONVERSIONS, architecture)
    assert "cvt.rn.f16.f32" in ptx
    assert "cvt.rn.bf16.f32" in ptx
    ptx = compile_cuda(VECTORS, architecture)
    assert "v4.b32" in ptx or "v2.b64" in ptx or "v4.f32" in ptx
    ptx = compile_cuda(REDUCTIONS, architecture)
    assert "shfl.sync.bfly" in ptx
    # Two barriers for each of the six reductions that cross warps.
    assert ptx.count("bar.sync") == 12


def test_headers_come_after_what_they_include():
    names = [path.name for path in embed_device.order_headers(HEADERS)]
    assert sorted(names) == sorted(path.name for path in HEADERS)
    assert names.index("prelude.cuh") == 0
    assert (
        names.index("math_basic.cuh") < names.index("math_exp.cuh") < names.index("math_trig.cuh")
    )
    assert names.index("combine.cuh") < names.index("block.cuh")
    assert "#include" not in TEXT
    with pytest.raises(SystemExit, match="prelude.cuh"):
        embed_device.order_headers([path for path in HEADERS if path.name != "prelude.cuh"])


def test_generated_source_defines_the_text(tmp_path):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    generated = tmp_path / "device_text.cpp"
    embed_device.main([str(generated), *map(str, HEADERS)])
    program = tmp_path / "print.cpp"
    program.write_text(
        '#include <cstdio>\n#include "jit/generated.h"\n'
        "int main() { auto t = stitch::device_text(); fwrite(t.data(), 1, t.size(), stdout); }\n"
    )
    binary = tmp_path / "print"
    sources = [str(program), str(generated)]
    subprocess.run(
        [compiler, "-std=c++20", f"-I{ROOT / 'csrc'}", *sources, "-o", str(binary)], check=True
    )
    assert subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout == TEXT


HOST_KERNEL = """
STITCH_KERNEL(gelu, 1, 1)(const bf16* x, f32* y, boolean* z, i64 n) {
  STITCH_SIMD
  for (i64 i = 0; i < n; ++i) {
    const f32 v = convert<f32>(x[i]);
    y[i] = mul(mul(0.5f, v), add(1.0f, erf(mul(v, 0x1.6a09e6p-1f))));
    z[i] = convert<boolean>(gt(v, 0.0f));
  }
}
"""


def compile_host(kernels, folder):
    """A library whose loops, one or more, have been vectorised."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    source = folder / "kernel.cpp"
    source.write_text(TEXT + "namespace stitch {\n" + kernels + "}\n")
    library = folder / "kernel.so"
    result = subprocess.run(
        [compiler, *HOST_FLAGS, "-fopt-info-vec-optimized", str(source), "-o", str(library)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "loop vectorized" in result.stderr
    return library


DROPOUT = """
STITCH_KERNEL(dropout, 128, 1)(const f32* x, f32* y, const i64* seed, i64 n) {
  LOOP {
    const bool kept = random_uniform(seed[0], seed[1], i) >= 0.5f;
    y[i] = mul(mul(x[i], convert<f32>(kept)), 2.0f);
  }
}
"""


def test_random_numbers_vectorise_on_the_host(tmp_path):
    compile_host(DROPOUT.replace("LOOP", "STITCH_SIMD for (i64 i = 0; i < n; ++i)"), tmp_path)


@needs_nvrtc
def test_four_unrolled_lanes_share_a_block_of_random_numbers():
    """ptxas joins what follows from equal ones; also where a constant lies before the first."""

    def count(lanes):
        kernel = f"""namespace stitch {{ STITCH_KERNEL(draw, 128, 1)(u32* y, const i64* seed) {{
          const i64 key = seed[0], stream = seed[1];
          STITCH_UNROLL for (int j = 0; j < {lanes}; ++j)
            y[tid() * 8 + j + 16] = random_word(key, stream, i64(tid() * 8 + 16), j);
        }} }}"""
        code = _core.disassemble(_core.compile_cubin(kernel, "h200"))
        return code.count("IMAD") + code.count("LOP3")

    blocks = count(1), count(4), count(8)
    assert 30 <= blocks[0] and blocks[1] < 2 * blocks[0] and blocks[2] < 4 * blocks[0], blocks


def test_host_kernels_compile_vectorise_and_run(tmp_path):
    library = compile_host(HOST_KERNEL, tmp_path)
    bits = np.arange(65536, dtype=np.uint16)
    x = (bits.astype(np.uint32) << 16).view(np.float32)
    y, z = np.empty(65536, np.float32), np.empty(65536, np.uint8)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (bits, y, z)]
    ctypes.CDLL(str(library)).gelu(*pointers, ctypes.c_int64(65536))
    torch = pytest.importorskip("torch")
    finite = np.isfinite(x)
    expected = np.zeros(65536)
    expected[finite] = torch.nn.functional.gelu(torch.from_numpy(x[finite]).double()).numpy()
    # 1 + erf loses what erf is near -1, in eager too: an absolute bound scaled by |x|.
    error = np.abs(y[finite] - expected[finite]) / np.maximum(np.abs(x[finite]), 1e-38)
    assert error.max() < 2e-7
    assert np.array_equal(z.astype(bool), x > 0)
