"""How the clock is asked: python -m torch_stitch clock, for texts and cubins; what it refuses."""

import json

import pytest
from test_device_headers import needs_nvrtc

from torch_stitch import _core
from torch_stitch.__main__ import main

pytestmark = needs_nvrtc

COPY = """
__global__ void copy(float4* y, const float4* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""
ARGUMENTS = "16777216*f32,16777216*f32,4194304"


@pytest.fixture
def run(tmp_path, capsys):
    """The exit status of a command for COPY or other bytes, and what it printed."""

    def run_command(*words, source=COPY):
        path = tmp_path / "kernel"
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        kernel = ["--kernel", "copy", "--grid", "16384", "--block", "256"]
        try:
            status = main(["clock", str(path), *kernel, *words])
        except SystemExit as error:
            status = error.code
        return status, "".join(capsys.readouterr())

    return run_command


def test_a_text_and_its_cubin_take_the_same_time(run):
    _, of_text = run("--args", ARGUMENTS, "--json")
    _, of_cubin = run("--args", ARGUMENTS, "--json", source=_core.compile_cubin(COPY))
    assert of_text == of_cubin
    result = json.loads(of_text)
    assert result["memory_bytes"] == pytest.approx(2 * 4 * 16777216, rel=0.02)
    assert result["us"] == pytest.approx(result["memory_bytes"] / 4.07e6, rel=0.1)
    assert (result["bound"], result["resident_threads"]) == ("memory", 2048)
    assert result["assumptions"] == []
    assert result["uses"]["memory"] > 0.8


TABLE = """
struct Tensors { void* at[4]; };
__global__ void copy(const __grid_constant__ Tensors tensors) {
  void* const* at = tensors.at;
  HIDE
  float4* elements = static_cast<float4*>(at[blockIdx.x >> 10]);
  int i = (blockIdx.x & 1023) * 256 + threadIdx.x;
  float4 element = elements[i];
  element.x += 1;
  elements[i] = element;
}
"""


@pytest.mark.parametrize("hide", ["", 'asm volatile("" : "+l"(at));'])
def test_tensors_of_a_table_among_the_parameters_are_known(run, hide):
    """Also where the compiler does not see which memory it loads: it may not by itself."""
    words = "--grid", "4096", "--args", ",".join(["1048576*f32"] * 4), "--json"
    result = json.loads(run(*words, source=TABLE.replace("HIDE", hide))[1])
    assert result["memory_bytes"] == pytest.approx(4 * 2 * 4 * 1048576, rel=0.02)
    assert result["assumptions"] == []


IN_TURNS = """
__global__ void copy(float4* y, const float4* x, int pieces) {
  for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x)
    for (int i = 0; i < 16384; i += 1024)
      y[piece * 16384 + i + threadIdx.x] = x[piece * 16384 + i + threadIdx.x];
}
"""


def test_blocks_that_do_the_work_of_two_move_as_much_as_two_blocks(run):
    """384 pieces by 264 resident blocks: 120 of them copy two."""
    words = "--block", "1024", "--args", "25165824*f32,25165824*f32,384", "--json"
    each, turns = (json.loads(run(*words, "--grid", n, source=IN_TURNS)[1]) for n in ("384", "264"))
    assert turns["us"] == pytest.approx(each["us"], rel=0.05)
    for result in (each, turns):
        assert result["memory_bytes"] == pytest.approx(2 * 4 * 25165824, rel=0.05)


def test_the_result_is_printed_with_what_was_assumed(run):
    status, printed = run("--target", "h100")
    assert status == 0
    assert "copy" in printed and "on h100: " in printed and "bound by memory" in printed
    assert "assumed: arguments of 8 bytes are pointers" in printed


def test_a_timeline_of_one_multiprocessor(run, tmp_path):
    status, _ = run("--args", ARGUMENTS, "--trace", str(tmp_path / "trace.json"))
    assert status == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    blocks = [event for event in events if event["name"].startswith("block")]
    assert len(events) == 9 * len(blocks)  # 8 warps each
    assert all(event["dur"] > 0 for event in events)


REFUSED = {
    "extent x of the grid is 0": ["--grid", "0"],
    "takes 3 arguments, found 1": ["--args", "4"],
    "found the argument 'x'": ["--args", "x"],
    "has no kernel 'move'": ["--kernel", "move"],
    "bytes of shared memory": ["--shared", "400000"],
    "unknown target 'h300'": ["--target", "h300"],
    "cannot be written": ["--trace", "/nowhere/trace.json"],
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_use_is_an_error_that_says_so(run, message):
    status, printed = run(*REFUSED[message])
    assert status == 2
    assert message in printed


def test_bytes_that_are_no_kernel_are_refused(run):
    cubin = _core.compile_cubin(COPY)
    status, printed = run(source=cubin[: len(cubin) // 2])
    assert status == 2 and "damaged" in printed
    status, printed = run("--target", "b200", source=cubin)
    assert status == 2 and "the cubin is for sm_90, and b200 runs sm_100a" in printed
    status, printed = run(source="no CUDA text")
    assert status == 2 and "does not compile" in printed
