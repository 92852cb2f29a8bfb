"""Bad or unusual input of the clock is an error that says so, or an assumption in the result."""

import ctypes
import json
import re

import pytest
from test_clock import COPY
from test_device_headers import NVRTC, needs_nvrtc, read_result

from torch_stitch import _core

pytestmark = needs_nvrtc

COPY_ARGUMENTS = "16777216*f32,16777216*f32,4194304"
CALLS = """
__device__ __noinline__ float work(float x, int n) {
  #pragma unroll 1
  for (int i = 0; i < n; ++i) x = x * 1.5f + i;
  return x;
}
extern "C" __global__ void calls(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = work(x[i], n) + work(x[i] + 1, n);
}
"""
POINTERS = """
__device__ __noinline__ float one(float x) { return x * 2; }
__device__ __noinline__ float two(float x) { return x * 3 + sinf(x); }
__device__ float (*table[2])(float) = {one, two};
extern "C" __global__ void pick(float* y, int n) { y[threadIdx.x] = table[n & 1](y[threadIdx.x]); }
"""
RECURSION = """
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursive(int* y, int n) { y[threadIdx.x] = fib(n); }
"""
SPILLS = """
extern "C" __global__ void __launch_bounds__(1024, BLOCKS) spills(float* y, const float* x, int n) {
  float a[40];
  #pragma unroll
  for (int k = 0; k < 40; ++k) a[k] = x[k * 1024 + threadIdx.x];
  #pragma unroll 1
  for (int i = 0; i < n; ++i) {
    #pragma unroll
    for (int k = 0; k < 40; ++k) a[k] = a[k] * a[(k + 7) % 40] + 1;
  }
  #pragma unroll
  for (int k = 0; k < 40; ++k) y[k * 1024 + threadIdx.x] = a[k];
}
"""
SPILLED_INTEGERS = """
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* y, const float* x, int n) {
  int at[40];
  #pragma unroll
  for (int k = 0; k < 40; ++k) at[k] = threadIdx.x * (2 * k + 1) & 1023;
  #pragma unroll 1
  for (int i = 0; i < n; ++i) {
    #pragma unroll
    for (int k = 0; k < 40; ++k) at[k] = at[k] + at[(k + 7) % 40] & 1023;
  }
  #pragma unroll
  for (int k = 0; k < 40; ++k) y[k * 1024 + threadIdx.x] = x[at[k]];
}
"""
TABLE = """
extern "C" __global__ void choose(float* y, int n) {
  switch (n) {
    case 0: y[3] = sinf(y[4]); break;
    case 1: y[5] = y[6] / 3; break;
    case 2: y[7] = expf(y[8]); break;
    case 3: y[9] = logf(y[1]); break;
    case 4: y[2] = y[0]; y[11] = y[12]; break;
    case 5: __syncthreads(); y[13] = y[14]; break;
  }
}
"""
LOOP = """
extern "C" __global__ void rows(float* y, const float* x, const int* ends) {
  float sum = 0;
  #pragma unroll 1
  for (int i = 0; i < ends[blockIdx.x]; ++i) sum += x[i * 32 + threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""
SHARED = """
extern "C" __global__ void both(float* y) {
  __shared__ float own[12000];
  extern __shared__ float given[];
  own[threadIdx.x] = y[threadIdx.x];
  given[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = own[63 - threadIdx.x] + given[3];
}
"""


def ask(source, args="", grid=132, block=64, **options):
    """The clock's result of a text or cubin."""
    given = {"kernel": "", "shared_bytes": 0, "trips": 8, "target": "h200", "trace": ""} | options
    grid = grid if isinstance(grid, list) else [grid]
    result = _core.time_kernel(source, grid=grid, block=[block], args=args, **given)
    return json.loads(result.to_json())


def compile_with(text, *options):
    """A cubin for sm_90a."""
    program = ctypes.c_void_p()
    options = ["--gpu-architecture=sm_90a", *options]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
    assert NVRTC.nvrtcCompileProgram(program, len(options), array) == 0
    cubin = read_result(program, "CUBIN")
    NVRTC.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin


def test_a_cubin_that_ends_early_is_damaged_wherever_it_ends():
    cubin = _core.compile_cubin(COPY)
    for size in [*range(4, len(cubin), 61), len(cubin) - 1]:
        with pytest.raises(_core.StitchError, match=r"damaged|fewer than the header"):
            ask(cubin[:size], COPY_ARGUMENTS)


@pytest.mark.parametrize(("made", "asked"), [("a100", "h200"), ("h200", "b200"), ("b200", "a100")])
def test_a_cubin_of_another_architecture_is_refused(made, asked):
    cubin = _core.compile_cubin(COPY, made)
    with pytest.raises(_core.StitchError, match=r"the cubin is for sm_\d+, and .* runs sm_\d+"):
        ask(cubin, COPY_ARGUMENTS, target=asked)


def test_a_debug_build_is_timed_and_said_to_be_one():
    shipped, debug = (ask(compile_with(COPY, *o), COPY_ARGUMENTS) for o in ([], ["-G"]))
    said = "the cubin was built for debugging: it is not what would be shipped"
    assert (shipped["assumptions"], debug["assumptions"]) == ([], [said])
    assert debug["asked_bytes"] == shipped["asked_bytes"]
    assert debug["instructions_per_thread"] > 3 * shipped["instructions_per_thread"]


def test_loops_of_a_debug_build_end():
    words = "8448*f32,5000*f32,132*i32<2"
    assert ask(compile_with(LOOP, "-G"), words)["asked_bytes"] > 4 * 8448
    with pytest.raises(_core.StitchError, match="does not end"):
        ask(compile_with(LOOP, "-G"), "8448*f32,5000*f32,132*i32")


def test_calls_are_followed_and_counted():
    few, many = (ask(CALLS, f"8448*f32,8448*f32,{n}") for n in (10, 110))
    assert few["assumptions"] == many["assumptions"] == []
    per_trip = (many["instructions_per_thread"] - few["instructions_per_thread"]) / 100
    assert 2 * 3 < per_trip < 2 * 8  # a product, a conversion, a sum and the loop's own


def test_a_recursion_of_known_depth_is_followed():
    """Its return addresses lie on the stack."""
    few, many = (ask(RECURSION, f"64*i32,{n}")["instructions_per_thread"] for n in (6, 10))
    assert 5 * few < many < 10 * few  # calls: 25 and 177


def test_calls_whose_target_is_not_known_are_refused():
    with pytest.raises(_core.UnsupportedError, match="calls or returns at 0x"):
        ask(POINTERS, "64*f32,1", grid=1)


def test_indirect_branches_are_refused():
    with pytest.raises(_core.UnsupportedError, match="branches indirectly at 0x"):
        ask(TABLE, "32*f32,1", grid=1)


def test_spills_take_time_and_are_said():
    words, launch = "40960*f32,40960*f32,10", {"grid": 264, "block": 1024}
    whole, spilling = (ask(SPILLS.replace("BLOCKS", n), words, **launch) for n in "12")
    assert (whole["registers"] > 40, whole["assumptions"]) == (True, [])
    assert spilling["registers"] == 32
    (said,) = [s for s in spilling["assumptions"] if s.startswith("local memory")]
    assert re.fullmatch(r"local memory \(\d+ bytes a thread\) goes through the .* cache, .*", said)
    assert spilling["uses"]["second cache"] > whole["uses"]["second cache"]
    assert spilling["instructions_per_thread"] > whole["instructions_per_thread"] + 20


def test_integers_that_were_spilled_are_known_when_they_come_back():
    said = ask(SPILLED_INTEGERS, "40960*f32,1024*f32,10", grid=264, block=1024)
    assert [s.partition(" (")[0] for s in said["assumptions"]] == ["local memory"]


def test_a_loop_whose_end_is_not_given_runs_the_trips_that_are_said():
    words = "8448*f32,5000*f32,132*i32"
    for trips in (1, 8, 100):
        said = ask(LOOP, words, trips=trips)
        assert f"loops whose end depends on data run {trips} trips" in said["assumptions"]
        assert said["asked_bytes"] > 4 * 8448 * trips
    assert ask(LOOP, words + "<100")["assumptions"] == []
    for trips in (0, -3):
        with pytest.raises(_core.StitchError, match=f"trips is {trips}; it is at least 1"):
            ask(LOOP, words, trips=trips)


def test_integers_below_nothing_are_refused():
    with pytest.raises(_core.StitchError, match=r"found the argument '132\*i32<0'"):
        ask(LOOP, "8448*f32,5000*f32,132*i32<0")


def test_grids_of_one_block_and_of_the_most():
    one = ask(COPY, COPY_ARGUMENTS, grid=1)
    assert one["simulated_share"] == 1 and one["bound"] == "too few blocks"
    most = ask(COPY, "", grid=2**31 - 1)
    assert most["us"] > 1e6 and most["simulated_share"] < 1e-4
    assert ask(COPY, "", grid=[2**31 - 1, 65535, 65535])["us"] > 1e15
    for grid in (0, 2**31, [1, 65536]):
        with pytest.raises(_core.StitchError, match=r"extent [xy] of the grid is \d+; it is 1 to"):
            ask(COPY, "", grid=grid)


def test_shared_memory_beyond_the_limit_is_refused_whoever_asks_for_it():
    assert ask(SHARED, "64*f32", shared_bytes=180000)["us"] > 0
    for given in (190000, 400000):
        with pytest.raises(_core.StitchError, match=rf"takes {48000 + given} bytes of shared"):
            ask(SHARED, "64*f32", shared_bytes=given)
    with pytest.raises(_core.StitchError, match="it cannot be launched"):
        ask(COPY, COPY_ARGUMENTS, shared_bytes=-1)


def test_blocks_larger_than_the_kernel_was_compiled_for_are_refused():
    bounded = COPY.replace("void copy", "void __launch_bounds__(64) copy")
    assert ask(bounded, COPY_ARGUMENTS, block=64)["us"] > 0
    with pytest.raises(_core.StitchError, match="a block has 128 threads, and .* at most 64"):
        ask(bounded, COPY_ARGUMENTS, block=128)


@pytest.mark.parametrize(
    ("last", "words"),
    [("4*i32", "2 is a pointer of more"), ("5000000000", "a number of more than the 4")],
)
def test_arguments_that_their_parameters_do_not_hold_are_refused(last, words):
    with pytest.raises(_core.StitchError, match=words):
        ask(COPY, f"1024*f32,1024*f32,{last}")
    assert ask(COPY, "1024*f32,1024*f32,-1")["us"] > 0
