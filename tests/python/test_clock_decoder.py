"""The clock's decoder: opcode, predicate and operands as the vendor's disassembler has them, and
control bits by which each result of variable latency is waited for before it is read.
"""

import gzip
import os
import re
import sys
from pathlib import Path

import pytest
from test_device_headers import needs_nvrtc

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import sass_checks  # noqa: E402
from benchmarks.decoder_rows import Checked, rows_of  # noqa: E402
from benchmarks.nvdisasm import find_nvdisasm, split_ours  # noqa: E402
from benchmarks.sass_checks import check_cubin, find_unequal, find_unwaited  # noqa: E402
from torch_stitch import _core  # noqa: E402

NVDISASM = find_nvdisasm()
needs_nvdisasm = pytest.mark.skipif(
    NVDISASM is None, reason="no nvdisasm: pip install triton, or put it on PATH"
)
needs_cubins = pytest.mark.skipif(
    "STITCH_TEST_CUBINS" not in os.environ,
    reason="no folder of cubins: STITCH_TEST_CUBINS names one",
)
GPUS = {"a100": "sm_80", "h200": "sm_90a", "b200": "sm_100a"}


def golden_texts():
    """Each kernel's text once; it begins with its namespace."""
    texts = set()
    for path in sorted((ROOT / "tests/golden/text").glob("*.h200.txt")):
        _, *kernels = path.read_text().split("namespace stitch {\n")
        texts.update("namespace stitch {\n" + kernel for kernel in kernels)
    return sorted(texts)


def count_checked(cubins, tmp_path, nvdisasm=NVDISASM):
    """Instructions and results of cubins in which nothing is found."""
    instructions = results = 0
    for cubin in cubins:
        for kernel, found in check_cubin(cubin, tmp_path / "cubin", nvdisasm).items():
            assert not found["unwaited"] and not found.get("unequal"), kernel
            instructions += found["instructions"]
            results += found["results"]
    return instructions, results


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("target", GPUS)
def test_kernels_of_the_goldens_decode_as_nvdisasm_says(target, tmp_path):
    cubins = [_core.compile_cubin(text, target) for text in golden_texts()]
    assert count_checked(cubins, tmp_path)[0] > 5_000


@needs_nvrtc
@pytest.mark.parametrize("target", GPUS)
def test_each_result_of_variable_latency_is_waited_for(target, tmp_path):
    cubins = [_core.compile_cubin(text, target) for text in golden_texts()]
    assert count_checked(cubins, tmp_path, nvdisasm=None)[1] > 500


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("target", ["h200", "b200"])
def test_kernels_as_people_write_them_decode_as_nvdisasm_says(target, tmp_path):
    paths = sorted((ROOT / "tests/python/ptxsim_kernels/samples").glob("*.cu"))
    cubins = [_core.compile_cubin(path.read_text(), target) for path in paths]
    assert count_checked(cubins, tmp_path)[0] > 2_500


@needs_nvdisasm
@needs_cubins
def test_cubins_of_a_folder_decode_as_nvdisasm_says(tmp_path):
    paths = sorted(Path(os.environ["STITCH_TEST_CUBINS"]).glob("*.cubin.gz"))
    assert paths
    assert count_checked((gzip.decompress(path.read_bytes()) for path in paths), tmp_path)[0]


@needs_nvrtc
@pytest.mark.parametrize("target", GPUS)
def test_no_opcode_of_the_goldens_is_unknown(target):
    for text in golden_texts():
        assert "UNKNOWN" not in _core.disassemble(_core.compile_cubin(text, target))


@needs_nvrtc
@pytest.mark.parametrize(
    ("target", "lanes"), {"a100": r"WARPSYNC R\d+$", "h200": r"WARPSYNC R\d+, `\(0x\w+\)$"}.items()
)
def test_a_barrier_of_some_lanes_has_a_target_where_they_act_together(target, lanes):
    text = (ROOT / "tests/python/ptxsim_kernels/samples/warp_scan.cu").read_text()
    lines = _core.disassemble(_core.compile_cubin(text, target)).splitlines()
    assert any(re.search(lanes, line.partition("  ; ")[0]) for line in lines)


def instruction(text, sets=(), reads=(), scoreboard=7, waits=(), queue=""):
    """One that list_instructions could answer with."""
    return {
        "text": text,
        "sets": list(sets),
        "reads": list(reads),
        "queue": queue,
        "scoreboard": scoreboard,
        "wait_mask": sum(1 << board for board in waits),
    }


def load(scoreboard=1, queue="global", first=2, guard=""):
    sets = [f"R{first}", f"R{first + 1}"]
    text = f"{guard}LDG {sets[0]}, [R4.64]"
    return instruction(text, sets, ["R4", "R5"], scoreboard, queue=queue)


def reader(waits=(), text="FADD R6, R3, R3"):
    return instruction(text, ["R6"], ["R3"], waits=waits)


EXIT = instruction("EXIT PT")


@pytest.mark.parametrize(("code", "wrong"), {
    "waited": ([load(), reader([1]), EXIT], []),
    "not waited": ([load(), reader(), EXIT], [1]),
    "by another scoreboard": ([load(), reader([0]), EXIT], [1]),
    "set anew": ([load(), instruction("MOV R2, 0x0", ["R2"]), EXIT], [1]),
    "set anew in some lanes": ([load(), instruction("@P0 MOV R2, 0x0", ["R2"]), EXIT], []),
    "without a scoreboard": ([load(7), reader([0, 1, 2, 3, 4, 5]), EXIT], [1]),
    "by the next one's": ([load(7), load(1, first=8), reader([1]), EXIT], []),
    "by one of another queue": ([load(7), load(1, "shared", 8), reader([1]), EXIT], [2]),
    "in other lanes": ([load(guard="@P0 "), reader(text="@!P0 FADD R6, R3, R3"), EXIT], []),
    "in lanes chosen anew": (
        [load(guard="@P0 "), instruction("ISETP P0", ["P0"]),
         reader(text="@!P0 FADD R6, R3, R3"), EXIT], [2]),
    "behind a branch": ([load(), instruction("BRA `(0x30)"), EXIT, reader(), EXIT], [3]),
    "on one path": (
        [instruction("@P0 BRA `(0x20)", reads=["P0"]), load(), reader([0]), EXIT], [2]),
    "on the other path": (
        [load(), instruction("@P0 BRA `(0x30)"), reader([1]), reader(), EXIT], [3]),
    "in the next trip": (
        [reader(), load(), instruction("@P0 BRA `(0x0)"), EXIT], [0, 1]),
    "waited in each trip": (
        [reader([1]), load(), instruction("@P0 BRA `(0x0)"), EXIT], []),
    "where lanes meet": (
        [instruction("BSSY B0, PT, `(0x40)"), load(), instruction("BSYNC PT, B0"), EXIT,
         reader(), EXIT], [4]),
    "behind a call": ([load(), instruction("CALL PT, `(0x30)"), reader(), reader(), EXIT], []),
}.values())  # fmt: skip
def test_what_nothing_waits_for_is_found(code, wrong):
    assert list(find_unwaited(code)) == [hex(16 * i) for i in wrong]


def test_instructions_that_differ_or_are_missing_are_found():
    ours = {0: ("", "MOV", ["R1", "R2"]), 16: ("@P0", "EXIT", [])}
    assert find_unequal(ours, dict(ours)) == {}
    assert find_unequal(ours, ours | {16: ("", "EXIT", [])}).keys() == {"0x10"}
    assert find_unequal(ours, ours | {32: ("", "NOP", [])}).keys() == {"0x20"}
    assert find_unequal(ours, {0: ours[0]}).keys() == {"0x10"}


COPY = """extern "C" __global__ void copy(float* y, const float* x) {
  y[threadIdx.x] = x[threadIdx.x] + 1;
}"""


def checked_rows(nvdisasm, cubins=1):
    """By the last words of their names."""
    checked = Checked(nvdisasm)
    for i in range(cubins):
        checked.add("copies", str(i), lambda: [_core.compile_cubin(COPY, "h200")])
    return {row.name.split()[-1]: row for row in rows_of("copies", checked, 1)}


@needs_nvrtc
def test_rows_count_what_is_wrong_of_each_kernel_once(monkeypatch):
    right = _core.list_instructions(_core.compile_cubin(COPY, "h200"), "copy")
    theirs = {i * 16: split_ours(of["text"]) for i, of in enumerate(right)}
    monkeypatch.setattr(sass_checks, "run_nvdisasm", lambda *_: {"copy": theirs})
    rows = checked_rows("nvdisasm", cubins=3)
    assert [row.value for row in rows.values()] == [0, 1, 0, 0] and all(r.ok for r in rows.values())
    assert rows["checked"].detail["copies"] | {"instructions": 0} == {
        "kernels": 3, "of these new": 1, "instructions": 0}  # fmt: skip

    theirs[0] = ("@P0", *theirs[0][1:])
    unwaiting = [of | {"wait_mask": 0} for of in right]
    monkeypatch.setattr(_core, "list_instructions", lambda *_: unwaiting)
    rows = checked_rows("nvdisasm", cubins=3)
    assert rows["otherwise"].value == 1 and rows["otherwise"].ok is False
    assert rows["otherwise"].detail["copies, 0, copy"].keys() == {"0x0"}
    assert rows["early"].value >= 2 and rows["early"].ok is False
    assert "FADD" in str(rows["early"].detail)


@needs_nvrtc
def test_without_nvdisasm_nothing_is_said_to_be_equal():
    rows = checked_rows(None)
    assert rows["otherwise"].value.startswith("not measured") and rows["otherwise"].ok is None
    assert rows["early"].value == 0


def test_what_is_not_compiled_is_counted():
    def fail():
        raise RuntimeError("no kernel")

    checked = Checked(None)
    checked.add("copies", "0", fail)
    row = next(iter(rows_of("copies", checked, 1)))
    assert row.value == 1 and not row.ok and row.detail == {"copies, 0": "no kernel"}
