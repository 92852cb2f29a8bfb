"""ptxsim.run(..., clock=True): the clock times the launch that ptxsim runs, on the same inputs."""

import json

import pytest
import torch
from test_clock import COPY
from test_device_headers import needs_nvrtc

from torch_stitch import _core, ptxsim
from torch_stitch.__main__ import main

pytestmark = needs_nvrtc

ROWS = """
extern "C" __global__ void rows(float* y, const float* x, const INTEGER* ends) {
  float sum = 0;
  #pragma unroll 1
  for (int i = 0; i < ends[blockIdx.x]; ++i) sum += x[i * 32 + threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""
TYPES = {
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
}
LOOPS = "loops whose end depends on data run 8 trips"


def sum_rows(ends, **options):
    """What the clock says of 132 rows, each of as many trips as `ends` holds."""
    source = ROWS.replace("INTEGER", TYPES.get(ends.dtype, "float"))
    y, x = torch.zeros(132 * 64), torch.ones(5000)
    given = {"orders": 1, "clock": True} | options
    result = ptxsim.run(source, "rows", 132, 64, [y, x, ends], **given)
    assert not result.findings
    assert y.view(132, 64)[:, 0].equal(ends[:132].clamp(min=0).float())
    return json.loads(result.clock.to_json())


def test_a_copy_takes_the_time_that_the_clock_gives_its_cubin():
    count = 1 << 18
    y, x = torch.zeros(count), torch.rand(count)
    launch = {"grid": [count // 1024], "block": [256], "shared_bytes": 0}
    args = [y, x, count // 4]
    result = ptxsim.run(COPY, "copy", count // 1024, 256, args, orders=1, clock=True)
    assert y.equal(x) and not result.findings
    words = f"{count}*f32,{count}*f32,{count // 4}"
    others = {"kernel": "copy", "args": words, "trips": 8, "target": "h200", "trace": ""}
    cubin = _core.compile_cubin(COPY)
    assert result.clock.to_json() == _core.time_kernel(cubin, **launch, **others).to_json()
    assert repr(result).splitlines()[1].endswith("us on h200 without its launch, bound by latency")
    everything = json.loads(result.to_json())
    assert everything["clock"] == json.loads(result.clock.to_json())
    assert everything["clock"]["assumptions"] == []
    assert everything["moved_bytes"]["16"] == 8 * count


def test_without_it_there_is_none():
    result = ptxsim.run(COPY, "copy", 1, 32, [torch.zeros(128), torch.zeros(128), 32])
    assert result.clock is None
    assert json.loads(result.to_json())["clock"] is None
    assert len(repr(result).splitlines()) == 1


@pytest.mark.parametrize("dtype", TYPES)
def test_a_loop_whose_end_lies_in_a_tensor_takes_as_long_as_it_is(dtype):
    short, long = (sum_rows(torch.full((132,), n, dtype=dtype)) for n in (5, 120))
    assert short["assumptions"] == long["assumptions"] == []
    per_trip = (long["instructions_per_thread"] - short["instructions_per_thread"]) / 115
    assert 5 < per_trip < 15
    assert long["us"] > 2 * short["us"]


def test_narrow_integers_keep_their_sign():
    none = sum_rows(torch.full((132,), -100, dtype=torch.int8))
    assert none["instructions_per_thread"] < 30
    some = sum_rows(torch.full((132,), 100, dtype=torch.uint8))
    assert some["instructions_per_thread"] > 500


def test_each_block_has_the_end_that_its_own_integer_gives():
    ends = torch.full((132,), 10, dtype=torch.int32)
    even = sum_rows(ends)
    ends[0] = 100  # that of the multiprocessor that is walked
    assert sum_rows(ends)["us"] > 2 * even["us"]


def test_both_see_what_lay_in_memory_before_the_launch():
    source = """
    extern "C" __global__ void count_down(int* left, float* y) {
      const int end = left[threadIdx.x];
      left[threadIdx.x] = 0;
      #pragma unroll 1
      for (int i = 0; i < end; ++i) y[i * 32 + threadIdx.x] = i;
    }"""
    left, y = torch.full((32,), 50, dtype=torch.int32), torch.zeros(1600)
    result = ptxsim.run(source, "count_down", 1, 32, [left, y], clock=True)
    clock = json.loads(result.clock.to_json())
    assert left.eq(0).all() and clock["assumptions"] == []
    assert clock["asked_bytes"] == 4 * (32 + 32 + 1600)


def test_integers_that_the_kernel_stores_are_not_taken_for_what_they_were():
    source = """
    extern "C" __global__ void chase(int* at, float* y) {
      at[threadIdx.x] = threadIdx.x + 3;
      __syncthreads();
      #pragma unroll 1
      for (int i = 0; i < at[(threadIdx.x + 32) % 64]; ++i) y[i * 64 + threadIdx.x] = i;
    }"""
    at, y = torch.zeros(64, dtype=torch.int32), torch.zeros(64 * 70)
    result = ptxsim.run(source, "chase", 1, 64, [at, y], orders=1, clock=True)
    said = json.loads(result.clock.to_json())["assumptions"]
    stored = "integers in memory that the kernel also stores to are those from before the launch"
    assert stored in said and LOOPS in said


def test_of_outputs_nothing_is_known():
    source = """
    extern "C" __global__ void count(int* y) {
      y[threadIdx.x] = 5;
      #pragma unroll 1
      for (int i = 0; i < y[threadIdx.x ^ 0]; ++i) __nanosleep(1);
    }"""
    y = torch.zeros(32, dtype=torch.int32)
    result = ptxsim.run(source, "count", 1, 32, [y], outputs=[0], orders=1, clock=True)
    assert not result.findings and y.eq(5).all()


def test_numbers_and_structs_are_converted_as_for_the_run():
    source = """
    struct Ends { int of_none, of_all; };
    __global__ void loop(float* y, Ends ends, unsigned char more, short less) {
      #pragma unroll 1
      for (int i = 0; i < ends.of_all + more + less; ++i) y[i * 32 + threadIdx.x] = i;
    }"""
    y = torch.zeros(1600)
    ends = bytes([0, 0, 0, 0, 40, 0, 0, 0])
    result = ptxsim.run(source, "loop", 1, 32, [y, ends, 200, -190], orders=1, clock=True)
    clock = json.loads(result.clock.to_json())
    assert not result.findings and y[1568:].eq(49).all()
    assert (clock["asked_bytes"], clock["assumptions"]) == (4 * 1600, [])


def test_ptx_and_what_the_clock_does_not_know_are_refused():
    copy = [torch.zeros(128), torch.zeros(128), 32]
    ptx = _core.compile_ptx("copy", COPY)
    with pytest.raises(_core.StitchError, match="the source is PTX; give CUDA text"):
        ptxsim.run(ptx, "copy", 1, 32, copy, clock=True)
    with pytest.raises(_core.StitchError, match="unknown target 'two_sm'; known targets are a100"):
        ptxsim.run(COPY, "copy", 1, 32, copy, target="two_sm", clock=True)


def test_the_command_line_has_it(tmp_path, capsys):
    path = tmp_path / "copy.cu"
    path.write_text(COPY)
    command = ["ptxsim", str(path), "--kernel", "copy", "--block", "32", "--arg", "f32[128]"]
    command += ["--arg", "f32[128]=rand:in", "--arg", "32"]
    assert main([*command, "--clock"]) == 0
    assert "us on h200 without its launch" in capsys.readouterr().out
    assert main([*command, "--clock", "--no-checks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clock"]["kernel"].endswith("copyP6float4PKS_i")
