"""Kernels of benchmarks/device_numbers.py: they compile, and their loops hold what they should."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from torch_stitch import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import device_instructions, device_numbers, device_timing  # noqa: E402
from benchmarks.calibrate import LAUNCH_US  # noqa: E402
from benchmarks.clock_rows import DRAM_BYTES_PER_US  # noqa: E402


def has_nvrtc():
    try:
        _core.compile_cubin('extern "C" __global__ void nothing() {}', "h200")
    except Exception:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_nvrtc(), reason="needs NVRTC")


@pytest.mark.parametrize(
    "prefix, target",
    [("", "a100"), ("", "h200")]
    + [(f"#define CLUSTER {size}\n", "h200") for size in (2, 4, 8, 16)],
)
def test_kernels_compile(prefix, target):
    assert _core.compile_cubin(prefix + device_timing.TEXT.read_text(), target)


@pytest.mark.parametrize("chains", [1, 4])
@pytest.mark.parametrize("row", device_instructions.ROWS, ids=lambda row: row.name)
def test_a_loop_has_its_instructions(row, chains):
    text = device_instructions.kernel_text(row, chains)
    found = device_instructions.loop_opcodes(
        _core.disassemble(_core.compile_cubin(text, "h200"), "chain")
    )
    for opcode, times in Counter(row.sass).items():
        # Two chains may share one instruction that packs, or one that adds may be one that fuses.
        assert found.get(opcode, 0) >= times * device_instructions.UNROLL // 2
    if row.arch <= 80:
        assert _core.compile_cubin(text, "a100")


@pytest.mark.parametrize("row", device_instructions.ROWS, ids=lambda row: row.name)
def test_every_row_names_one_of_the_clock(row):
    assert device_timing.present(f"sass:{row.row}")


PLACES = re.findall(r"spec:[\w.]+|number:\w+", Path(device_numbers.__file__).read_text())


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_present_numbers_are_found(place):
    assert device_timing.present(place) > 0


def test_present_rates_are_those_of_the_row():
    assert device_timing.present("spec:dram_bytes_per_us") == DRAM_BYTES_PER_US
    assert device_timing.present("spec:launch_us") == LAUNCH_US


INSTRUCTIONS = re.findall(
    r"(?:POINTWISE\(|OP\()(\w+), .*?\((\d+), (\d+)(?:, (\d+))?\)",
    (Path(__file__).resolve().parents[2] / "csrc/ops/ops.def").read_text(),
)
COPIES, NAMES = 8, "abc"  # of an op in a kernel; its operands
# A product with an element is one more.
RANDOM = {
    "random": "random_uniform(5, 7, i64(i - i % 8), j) * a",
    "random_least": "random_least(429496832, 5, 7, i64(i - i % 8), j) ? a : 0.0f",
    "coarse_random": "coarse_uniform(5, 7, i64(i - i % 8), j) * a",
    "coarse_least": "coarse_least(429496832, 5, 7, i64(i - i % 8), j) ? a : 0.0f",
}


def count_instructions(expression, arity):
    """Of a thread for each of its elements: by the clock, and those of the special pipe."""
    operands = NAMES[:arity]
    pointers = "".join(f"const f32* __restrict__ p_{name}, " for name in operands)
    loads = "".join(f"const f32 {name} = p_{name}[i + j * 1024]; " for name in operands)
    text = f"""STITCH_KERNEL(k, 256, 1)({pointers}f32* __restrict__ y) {{
      const i32 i = i32(block_index()) * {COPIES * 1024} + tid();
      STITCH_UNROLL for (int j = 0; j < {COPIES}; ++j) {{
        {loads} y[i + j * 1024] = f32({expression});
      }}
    }}"""
    text = f"namespace stitch {{ {text} }}"
    how = {"grid": [64], "block": [256], "shared_bytes": 0, "target": "h200", "trips": 8}
    args = ",".join(["1048576*f32"] * (arity + 1))
    answer = _core.time_kernel(text.encode(), kernel="k", args=args, trace="", **how)
    special = _core.disassemble(_core.compile_cubin(text, "h200")).count("MUFU")
    return json.loads(answer.to_json())["instructions_per_thread"] / COPIES, special / COPIES


@pytest.fixture(scope="module")
def moved():
    """What a kernel takes for an element that has one bitwise instruction, by operands."""
    bits = [f"bit_cast<u32>({name})" for name in NAMES]
    return [
        count_instructions(f"bit_cast<f32>({' ^ '.join([*bits[:n], '5u'][: max(n, 2)])})", n)[0] - 1
        for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("name, exact, narrow, special", INSTRUCTIONS, ids=lambda value: value)
def test_an_op_takes_the_instructions_of_its_row(name, exact, narrow, special, moved):
    arity = {op["name"]: op["arity"] for op in _core.ops()}[name]
    operands = ", ".join(NAMES[:arity])
    forms = [(f"{name}({operands})", exact), (f"{name}_short({operands})", narrow)]
    if name in RANDOM:
        arity, forms[0] = 1, (RANDOM[name], exact)
    for expression, row in forms[: 1 + (exact != narrow)]:
        count, of_special = count_instructions(expression, arity)
        assert count - moved[arity - 1] == pytest.approx(int(row), rel=0.15, abs=1)
    assert of_special == pytest.approx(int(special or 0), rel=0.3, abs=0.6)
