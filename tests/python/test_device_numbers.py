"""Kernels of benchmarks/device_numbers.py: they compile, and their loops hold what they should."""

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
