"""The vendor's disassembler, found where Triton or a CUDA toolkit brings it, and its text as the
operands that matter: without modifiers, predicates that are always true and reuse flags.
"""

import importlib.util
import re
import shutil
import struct
import subprocess
from pathlib import Path

# What these read are numbers whose signs say nothing about time: they are not compared.
FLOATS = set(
    "FADD FMUL FFMA FMNMX FMNMX3 FSEL FSET FSETP FCHK MUFU F2F F2I FRND F2FP DADD DMUL DFMA DSETP "
    "HADD2 HFMA2 HMUL2 HSETP2 HSET2 HMNMX2".split()
)
HALF_OF_A_REGISTER = r"\.(reuse|H0_H0|H1_H1|H0|H1|H0_NH1|B0|B1|B2|B3|F32)\b"
LINE = r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?);?\s*/\* 0x"


def find_nvdisasm():
    """Its path, or None."""
    spec = importlib.util.find_spec("triton")
    if spec and spec.origin:
        path = Path(spec.origin).parent / "backends/nvidia/bin/nvdisasm"
        if path.is_file():
            return str(path)
    return shutil.which("nvdisasm")


def run_nvdisasm(program, path):
    """Of each kernel its instructions: byte -> (guard, name, operands)."""
    text = subprocess.run(
        [program, "-hex", "-c", str(path)], capture_output=True, text=True, check=True
    ).stdout
    kernels, labels, pending, code = {}, {}, [], None
    for line in text.split("\n"):
        if section := re.match(r"\s*\.section\s+\.text\.(\S+?),", line):
            code = kernels[section[1]] = {}
        elif label := re.match(r"^(\S+):\s*$", line):
            pending.append(label[1].strip('"'))
        elif (match := re.match(LINE, line)) and code is not None:
            labels.update(dict.fromkeys(pending, int(match[1], 16)))
            pending = []
            code[int(match[1], 16)] = match[2].strip().rstrip(";").strip()
    return {
        name: {at: split_theirs(line, at, labels) for at, line in code.items()}
        for name, code in kernels.items()
    }


def split_words(text):
    guard, words, operands = re.fullmatch(r"(@!?U?P\w+ )?\s*([\w.]+)\s*(.*?)\s*", text).groups()
    return (guard or "").strip(), words, [word for word in re.split(r"\s*,\s*", operands) if word]


def read_number(word):
    if special := re.fullmatch(r"([+-]?)(INF|[QS]NAN)", word):
        return float(special[1] + special[2][-3:].lower())
    try:
        return float(word)
    except ValueError:
        return None


def pack(value, words, is_half):
    """The bits of an immediate: of fp64 its upper half; of a half precision one the 16 bits."""
    if is_half and "BF16" not in words:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    if words.startswith("D") or words.endswith("F64"):
        return struct.unpack("<Q", struct.pack("<d", value))[0] >> 32
    return struct.unpack("<I", struct.pack("<f", value))[0] >> (16 if is_half else 0)


def pack_immediates(words, operands):
    """Decimals as the bits that stand in the instruction; any NaN is one word."""
    packed, values = [], [read_number(operand) for operand in operands]
    i = 0
    while i < len(operands):
        value, is_half = values[i], words.startswith("H")
        if value is None:
            packed.append(operands[i])
        elif is_half:  # two, the upper one first
            upper, lower = (pack(v, words, True) for v in values[i : i + 2])
            packed.append(f"0x{upper << 16 | lower:x}")
            i += 1
        else:
            packed.append("nan" if value != value else f"0x{pack(value, words, False):x}")
        i += 1
    return packed


def split_theirs(text, at, labels):
    guard, words, operands = split_words(re.sub(r"\(\*.*\*\)", "", text))
    name, found = words.split(".")[0], []
    for operand in operands:
        operand = re.sub(HALF_OF_A_REGISTER, "", operand).strip()
        if target := re.fullmatch(r"([^`]*)`\((.*)\)", operand):
            found += [target[1].strip()] * bool(target[1].strip())
            found.append(f"`(0x{labels[target[2]]:x})")
        elif indirect := re.fullmatch(r"(R\d+) (-?0x[0-9a-f]+)", operand):  # from the next on
            found += [indirect[1], f"`(0x{at + 16 + int(indirect[2], 16):x})"]
        else:
            found.append(operand)
    if name in FLOATS:
        found = pack_immediates(words, found)
    return guard, name, [clean(operand, name) for operand in found if not is_true(operand)]


def split_ours(text):
    guard, name, operands = split_words(text)
    if name in FLOATS and name[0] not in "HD":
        operands = ["nan" if is_nan(operand) else operand for operand in operands]
    return guard, name, [clean(operand, name) for operand in operands if not is_true(operand)]


def is_true(operand):
    return re.fullmatch("!?U?PT", operand)


def is_nan(operand):
    if not re.fullmatch("0x[0-9a-f]+", operand):
        return False
    bits = int(operand, 16)
    return bits & 0x7F800000 == 0x7F800000 and bits & 0x7FFFFF != 0


def clean(operand, name):
    if re.fullmatch("-0x[0-9a-f]+", operand):
        return f"0x{int(operand, 16) & 0xFFFFFFFF:x}"
    operand = operand.replace("+-", "-").replace("+URZ", "")
    operand = re.sub(r"^~(?=U?R)", "-", operand)  # the same bit: a carry comes in
    return re.sub(r"[-|]", "", operand) if name in FLOATS else operand
