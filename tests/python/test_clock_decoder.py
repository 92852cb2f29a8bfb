"""The clock's decoder: opcode, predicate and operands as the vendor's disassembler has them."""

import gzip
import os
import re
from pathlib import Path

import pytest
from test_device_headers import needs_nvrtc

from tests.support.nvdisasm import find_nvdisasm, run_nvdisasm, split_ours
from torch_stitch import _core

ROOT = Path(__file__).parents[2]
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


def decode_ours(cubin, kernel):
    lines = _core.disassemble(cubin, kernel).splitlines()
    found = (re.fullmatch(r"([0-9a-f]+) (.*?)  ; .*", line) for line in lines)
    return {int(line[1], 16): split_ours(line[2]) for line in found}


def check_against_nvdisasm(cubin, path):
    """The number of instructions, all of them equal."""
    path.write_bytes(cubin)
    count = 0
    for kernel, theirs in run_nvdisasm(NVDISASM, path).items():
        ours = decode_ours(cubin, kernel)
        assert ours.keys() == theirs.keys()
        wrong = {hex(at): (ours[at], theirs[at]) for at in theirs if ours[at] != theirs[at]}
        assert not wrong
        count += len(theirs)
    return count


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("target", GPUS)
def test_kernels_of_the_goldens_decode_as_nvdisasm_says(target, tmp_path):
    cubins = [_core.compile_cubin(text, target) for text in golden_texts()]
    assert sum(check_against_nvdisasm(cubin, tmp_path / "cubin") for cubin in cubins) > 5_000


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("target", ["h200", "b200"])
def test_kernels_as_people_write_them_decode_as_nvdisasm_says(target, tmp_path):
    paths = sorted((ROOT / "tests/python/ptxsim_kernels/samples").glob("*.cu"))
    cubins = [_core.compile_cubin(path.read_text(), target) for path in paths]
    assert sum(check_against_nvdisasm(cubin, tmp_path / "cubin") for cubin in cubins) > 2_500


@needs_nvdisasm
@needs_cubins
def test_cubins_of_a_folder_decode_as_nvdisasm_says(tmp_path):
    paths = sorted(Path(os.environ["STITCH_TEST_CUBINS"]).glob("*.cubin.gz"))
    assert paths
    for path in paths:
        assert check_against_nvdisasm(gzip.decompress(path.read_bytes()), tmp_path / "cubin")


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
