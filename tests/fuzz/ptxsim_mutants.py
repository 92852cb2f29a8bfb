"""Mutants of generated GPU kernels: does the simulator, with the original's result, see each one?

    python tests/fuzz/ptxsim_mutants.py [--kernels softmax] [--each 8] [--output FOLDER]

One instruction of a kernel's PTX is damaged: a barrier deleted, a bound moved by one, a stride, an
identity, a lane or a block index changed, a guard dropped.  Kernels of several phases also lose a
grid barrier whole, or the question which block is last, and meet at a counter that another launch
left in disorder.  The mutant runs on
random inputs under all orders.  It is killed by a finding or by any bit that differs from the
original's result.  A deleted barrier that survives runs on many more seeds: what stays without
finding is redundant, but no grid barrier is.  So is a number in place of what was not loaded, if
NaN and infinities there are seen nowhere either.
"""

import argparse
import random
import re
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests" / "python")]
from embed_device import join_headers  # noqa: E402
from ptx_equivalence import why_equivalent, why_not_loaded  # noqa: E402
from ptxsim_kernels.cases import Case, make_arguments  # noqa: E402
from ptxsim_kernels.nvrtc_ptx import to_ptx  # noqa: E402
from show import capture_graphs  # noqa: E402

from benchmarks import machine  # noqa: E402
from benchmarks.rows import Row  # noqa: E402
from benchmarks.run import print_row, results_directory, write_group  # noqa: E402
from torch_stitch import ptxsim  # noqa: E402
from torch_stitch._core import StitchError  # noqa: E402

BUDGET = 30_000_000  # lane-instructions: the originals need less than a tenth
# Of inputs: a maximum's identity shows with the second only, a bound of what cannot be negative
# (the sum of squares of deviations) with the third, what corrects a rounded mean with the fourth.
FLAVOURS = ("normal", "negative", "small", "far")
SEEDS = 4  # of inputs and orders, for a mutant that stays alive
SEEDS_OF_PROOF = 10  # for a deleted barrier
GRID = 7  # blocks of a cooperative launch, where any number is right: here they take turns
POISONS = ("0f7FC00000", "0f7F800000", "0fFF800000")  # NaN, infinities
MEET = re.compile(r".*\b(?:grid_barrier\(barrier\);|is_last_block\(barrier\)\) return;)")
STALE = (1, -1, 2**31 - 1)  # counts that no launch leaves: it turns the top bit of what it finds


def rms_norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def rotate(x, c, s):
    a, b = x.chunk(2, -1)
    return x * c + torch.cat((-b, a), -1) * s


def shares_of_rows(x):
    rows = (x - x.amax(0)).exp().sum(1)
    return rows / rows.sum()


# name: (function, shapes and dtypes of its inputs as it sees them, arguments of its one kernel).
# At least two warps and two blocks, and extents that divide nothing.
KERNELS = {
    "softmax": (
        lambda x: x.softmax(-1),
        ["f32[5x257]"],
        "in f32[5x257], out f32[5x257]",
    ),
    "masked_softmax": (
        lambda x, y: (x * 0.125 + y).softmax(-1),
        ["f32[2x3x300]", "f32[2x1x300]"],
        "in f32[2x3x300], in f32[2x1x300], out f32[2x3x300]",
    ),
    "layer_norm": (
        lambda x, y, w, b: F.layer_norm(x + y, (1100,), w, b),
        ["bf16[3x1100]", "bf16[3x1100]", "bf16[1100]", "bf16[1100]"],
        "in bf16[3x1100], in bf16[3x1100], in bf16[1100], in bf16[1100], out bf16[3x1100]",
    ),
    "rms_norm": (
        rms_norm,
        ["f32[3x1001]", "f32[1001]"],
        "in f32[3x1001], in f32[1001], out f32[3x1001]",
    ),
    "gelu": (
        lambda x, b: F.gelu(x + b),
        ["f32[7x301]", "f32[301]"],
        "in f32[7x301], in f32[301], out f32[7x301]",
    ),
    "column_sum": (
        lambda x: x.sum(0),
        ["f32[301x70]"],
        "in f32[301x70], out f32[70]",
    ),
    "column_mean_max": (
        lambda x: (x.mean(0), x.amax(0)),
        ["f32[301x70]"],
        "in f32[301x70], out f32[70], out f32[70]",
    ),
    "argmax": (
        lambda x: x.argmax(-1),
        ["f32[5x1300]"],
        "in f32[5x1300], out i64[5]",
    ),
    "group_norm": (
        lambda x: F.group_norm(x, 2),
        ["f32[3x8x9x13]"],
        "in f32[3x8x9x13], out f32[3x8x9x13]",
    ),
    "transpose": (
        lambda x: x.transpose(0, 1).contiguous() * 2,
        ["f32[67x45]"],
        "in f32[67x45], out f32[45x67]",
    ),
    "rotary": (
        rotate,
        ["f32[2x37x64]", "f32[37x64]", "f32[37x64]"],
        "in f32[2x37x64], in f32[37x64], in f32[37x64], out f32[2x37x64]",
    ),
    "variance": (
        lambda x: x.var(-1, correction=0),
        ["f32[5x999]"],
        "in f32[5x999], out f32[5]",
    ),
    "softmax_columns": (
        lambda x: x.softmax(0),
        ["f32[1501x33]"],
        "in f32[1501x33], out f32[33], out f32[33], out f32[1501x33]",
    ),
    "shares_of_rows": (
        shares_of_rows,
        ["f32[131x131]"],
        "in f32[131x131], out f32[131], out f32[131], out f32[131]",
    ),
    "total_of_rows": (
        lambda x: x.logsumexp(-1).sum(),
        ["f32[131x131]"],
        "in f32[131x131], out f32[131], out f32[131], out f32[1]",
    ),
}


@dataclass(frozen=True)
class Kernel:
    name: str
    entry: str
    text: str
    ptx: str
    case: Case


@dataclass
class Mutant:
    kernel: str
    kind: str
    line: int
    before: str
    after: str
    verdict: str = ""  # killed, redundant, survived
    reason: str = ""


@cache
def device_text():
    return join_headers(sorted((ROOT / "csrc/device/stitch").glob("*.cuh")))


def stand_in(text):
    dtype, sizes = re.fullmatch(r"(\w+)\[([\dx]+)\]", text).groups()
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16}
    return torch.zeros([int(size) for size in sizes.split("x")], dtype=dtypes[dtype])


def generate(name):
    """The kernel of KERNELS[name], as it would run on an H200."""
    function, inputs, arguments = KERNELS[name]
    graphs = capture_graphs(function, [stand_in(text) for text in inputs], target="h200")
    (kernel,) = [found for graph in graphs for found in graph.compile()["kernels"]]
    barriers, grid = kernel["text"].count("grid_barrier(barrier)"), kernel["grid"]
    meets = MEET.search(kernel["text"]) is not None
    dynamic = kernel["shared_bytes"] if "DYNAMIC_SHARED" in kernel["text"] else 0
    phases = ["int 0", f"int {barriers + 1}"] if barriers else []
    phases += ["any zero i32"] if meets else []  # the counter
    case = Case(
        name, "", "ok", min(grid, GRID) if meets else grid, kernel["block"], dynamic, meets,
        [*arguments.split(", "), *phases, "any zero i32"], {}, frozenset(),
    )  # fmt: skip
    return Kernel(name, kernel["name"], kernel["text"], in_ptx(kernel["text"]), case)


def in_ptx(text):
    return to_ptx(device_text() + text)


def run(kernel, ptx, seed, flavour, count=0):
    """The kinds of findings, and the bits of all that may be written.

    count is what the blocks of a cooperative launch find in the counter where they meet.
    """
    made = make_arguments(kernel.case, 100 * seed)
    if kernel.case.cooperative:
        made.values[-2].fill_(count)
    if flavour == "negative":
        for position in made.inputs:
            made.values[position].abs_().neg_().sub_(1)
    if flavour in ("small", "far"):
        for position in made.inputs:
            made.values[position].mul_(2.0**-10).add_(0 if flavour == "small" else 4096)
    # Odd seeds: one block takes all turns, so that what phases would hand on is read again.
    grid = 1 if kernel.case.cooperative and seed % 2 else kernel.case.grid
    found = ptxsim.run(
        ptx, kernel.entry, grid, kernel.case.block, made.values,
        inputs=made.inputs, outputs=made.outputs, budget=BUDGET, seed=seed,
        cooperative=kernel.case.cooperative, shared_bytes=kernel.case.shared_bytes,
    )  # fmt: skip
    kinds = sorted({finding.kind for finding in found.findings})
    counters = 2 if kernel.case.cooperative else 0  # where they meet, and the error
    stored = made.values[: len(made.values) - counters]
    written = [
        v for at, v in enumerate(stored) if at not in made.inputs and isinstance(v, torch.Tensor)
    ]
    return kinds, [v.contiguous().view(torch.uint8) for v in written]


def integers_moved(match):
    yield match.expand(rf"\g<1>{int(match[2]) + 1}\g<3>")
    yield match.expand(rf"\g<1>{int(match[2]) - 1}\g<3>")


def mask_halved(match):
    number = int(match[2])
    if number > 0 and number & (number + 1) == 0:  # of lanes or warps
        yield match.expand(rf"\g<1>{number >> 1}\g<3>")


def expand(*templates):
    return lambda match: (match.expand(template) for template in templates)


GRID_BARRIER, STALE_COUNTER = "grid barrier", "stale counter"
OTHER_COMPARE = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}
NUMBER = r"(-?\d+)"

# kind: (pattern of an instruction, what may stand in its place).  Integer constants are in the
# line: see inline_constants.
OPERATORS = {
    "barrier": (r"bar\.sync\s+0;", expand("")),
    "bound": (rf"(setp\.[lg][te]\.[su]32\s+%\w+, %\w+, ){NUMBER}(;)", integers_moved),
    "compare": (
        r"setp\.(lt|le|gt|ge|eq|ne)(\.[su]\d+\s+%\w+, %\w+, \S+;)",
        lambda match: [f"setp.{OTHER_COMPARE[match[1]]}{match[2]}"],
    ),
    "guard": (r"@(!?)(%p\d+)\s+(bra\s.*|st\..*|ld\..*)", expand(r"\3", "")),
    "stride": (
        rf"((?:mul\.lo|mul\.wide|mad\.lo)\.[su]\d+\s+%\w+, %\w+, ){NUMBER}(.*)",
        integers_moved,
    ),
    "shift": (rf"(shl\.\w+\s+%\w+, %\w+, ){NUMBER}(;)", integers_moved),
    "mask": (rf"(and\.b32\s+%\w+, %\w+, ){NUMBER}(;)", mask_halved),
    "offset": (
        rf"((?:ld|st)\.(?:global|shared)\S*\s.*\[[^\]+]+\+){NUMBER}(\].*)",
        lambda match: [match.expand(rf"\g<1>{int(match[2]) + 4}\g<3>")],
    ),
    "arrivals": (r"(mov\.[bus]32\s+%\w+, )(-2147483647)(;)", integers_moved),
    "identity": (
        r"(mov\.(?:f32|b32|u32)\s+%\w+, )(0fFF800000|0f00000000|-8388608|0);",
        lambda match: [match[1] + ("0f3F800000;" if "0f" in match[2] else "1065353216;")],
    ),
    "index": (r"%(tid|ctaid)\.x", lambda match: ["%ctaid.x" if match[1] == "tid" else "%tid.x"]),
    "lane": (
        rf"(shfl\.sync\.bfly\.b32\s+\S+, %\w+, ){NUMBER}(,.*)",
        lambda match: [match.expand(rf"\g<1>{int(match[2]) // 2 or 2}\g<3>")],
    ),
    "members": (r"(shfl\.sync\..*), -1;", expand(r"\1, 2147483647;", r"\1, 1;")),
    "subtract": (
        r"(sub\.\S+\s+%\w+), (%\w+), (%\w+);",
        lambda match: [f"{match[1]}, {match[3]}, {match[2]};"] if match[2] != match[3] else [],
    ),
    "combine": (
        r"(add\.rn|max|min|mul\.rn)(\.f32\s+%\w+, %\w+, %\w+;)",
        lambda match: [
            {"add.rn": "sub.rn", "max": "min", "min": "max", "mul.rn": "add.rn"}[match[1]]
            + match[2]
        ],
    ),
    "width": (
        r"((?:ld|st)\.global\S*)\.v(2|4)(\.\w+\s.*)\{(%\w+), (%\w+)[^}]*\}(.*)",
        lambda match: [
            match.expand(r"\1\3\4\6" if match[2] == "2" else r"\1.v2\3{\4, \5}\6")
        ],
    ),
}  # fmt: skip


def inline_constants(lines):
    """Registers that hold one constant all the time are replaced by it where they are read."""
    writes = Counter(m[1] for m in (re.match(r"\s+[\w.]+\s+(%r\d+)[,|]", x) for x in lines) if m)
    moves = (re.match(rf"\s+mov\.[bus]32\s+(%r\d+), {NUMBER};", line) for line in lines)
    known = {move[1]: move[2] for move in moves if move and writes[move[1]] == 1}
    reads = re.compile(r"(?<=, )%r\d+\b")
    return [
        reads.sub(lambda m: known.get(m[0], m[0]), line)
        if re.match(r"\s+(shfl|and|mul|mad|setp|shl|shr)\S*\s", line)
        else line
        for line in lines
    ]


def changes_nothing(kind, text, lines):
    """Whether any damage of this kind to the instruction is known to leave every result as it is.

    A comparison that only clamps an address is one: a guard beside it leaves those lanes out.  The
    order of a difference that is only squared is another.
    """
    if kind not in ("bound", "compare", "subtract"):
        return False
    register = re.search(r"%\w+", text)[0]
    uses = [line for line in lines if re.search(rf"{register}\b", line) and text not in line]
    if kind != "subtract":
        return not any(f"@{register} " in line or f"@!{register} " in line for line in uses)
    square = rf"mul\.\S+\s+%\w+, {register}, {register};"
    return all(re.search(square, line) for line in uses)


def mutants_of(kernel, lines, rng, each):
    """At most `each` of every kind but barriers, of which all are deleted in turn."""
    by_kind = defaultdict(list)
    for number, line in enumerate(lines):
        text = line.strip()
        if not text.endswith(";") or text.startswith("."):
            continue
        for kind, (pattern, replacements) in OPERATORS.items():
            match = re.search(pattern, text)
            if not match or changes_nothing(kind, text, lines):
                continue
            for new in replacements(match):
                after = text[: match.start()] + new + text[match.end() :]
                if after != text:
                    by_kind[kind].append(Mutant(kernel.name, kind, number + 1, text, after))
    for kind, found in by_kind.items():
        yield from found if kind == "barrier" else rng.sample(found, min(each, len(found)))


def grid_mutants_of(kernel):
    """Damage to how blocks meet: the line of a grid barrier deleted, a count that others left."""
    if not kernel.case.cooperative:
        return
    for number, line in enumerate(kernel.text.split("\n"), 1):
        if MEET.fullmatch(line):
            yield Mutant(kernel.name, GRID_BARRIER, number, line.strip(), "")
    for count in STALE:
        yield Mutant(kernel.name, STALE_COUNTER, 0, "0", str(count))


def damage(kernel, mutant, lines):
    if mutant.kind == STALE_COUNTER:
        return kernel.ptx
    if mutant.kind == GRID_BARRIER:
        lines = kernel.text.split("\n")
    text = "\n".join([*lines[: mutant.line - 1], mutant.after, *lines[mutant.line :]])
    return in_ptx(text) if mutant.kind == GRID_BARRIER else text


def differs(kernel, ptx, seed, flavour, originals, count=0):
    """Why the text is not the original, or "" where nothing tells them apart."""
    kinds, bits = run(kernel, ptx, seed, flavour, count)
    if kinds:
        return "+".join(kinds)
    key = (seed, flavour)
    if key not in originals:
        accused, originals[key] = run(kernel, kernel.ptx, seed, flavour)
        assert not accused, f"{kernel.name} itself: {accused}"
    return "" if all(map(torch.equal, bits, originals[key])) else "result"


def judge(kernel, mutant, lines, originals):
    ptx = damage(kernel, mutant, lines)
    count = int(mutant.after) if mutant.kind == STALE_COUNTER else 0
    seeds = SEEDS_OF_PROOF if mutant.kind == "barrier" else SEEDS
    try:
        for seed in range(seeds):
            for flavour in FLAVOURS:
                mutant.reason = differs(kernel, ptx, seed, flavour, originals, count)
                if mutant.reason:
                    mutant.verdict = "killed"
                    return
    except StitchError as error:
        mutant.verdict, mutant.reason = "invalid", str(error).splitlines()[0]
        return
    mutant.verdict = "survived"
    if mutant.kind == "identity":
        mutant.reason = why_unseen(kernel, mutant, lines, originals)
    elif mutant.kind == "barrier":
        mutant.reason = why_redundant(mutant.line, lines)
    if mutant.reason:
        mutant.verdict = "redundant"
    elif mutant.kind not in (GRID_BARRIER, STALE_COUNTER):
        mutant.reason = why_equivalent(mutant.line, lines)


def why_redundant(line, lines):
    after = lines[line:]
    if not any(".shared" in line for line in after):
        return "nothing of shared memory is touched after it"
    return f"its accesses are ordered by others: no race under any order of {SEEDS_OF_PROOF} seeds"


def why_unseen(kernel, mutant, lines, originals):
    """Why no number in place of a constant is seen, or "" where some are or might be."""
    reason = why_not_loaded(mutant.line, lines)
    for poison in POISONS if reason else ():
        after = mutant.before.replace(mutant.before.split()[-1], f"{poison};")
        ptx = damage(kernel, replace(mutant, after=after), lines)
        # No input moves these lanes; of a cooperative launch both grids are tried.
        if any(differs(kernel, ptx, seed, "normal", originals) for seed in range(2)):
            return ""
    return reason and f"{reason}; NaN and infinities there change no bit either"


def examine(name, each, seed=0):
    kernel = generate(name)
    lines = inline_constants(kernel.ptx.split("\n"))
    originals = {}
    assert not differs(kernel, "\n".join(lines), 0, "normal", originals), "constants inlined"
    mutants = list(mutants_of(kernel, lines, random.Random(f"{seed} {name}"), each))
    mutants += grid_mutants_of(kernel)
    for mutant in mutants:
        judge(kernel, mutant, lines, originals)
    return [mutant for mutant in mutants if mutant.verdict != "invalid"]


def summary(mutants):
    verdicts = Counter(mutant.verdict for mutant in mutants)
    counted = len(mutants) - verdicts["redundant"]
    by_kind = {
        kind: dict(Counter(mutant.verdict for mutant in mutants if mutant.kind == kind))
        for kind in (*OPERATORS, GRID_BARRIER, STALE_COUNTER)
    }
    return {
        "mutants": len(mutants),
        **verdicts,
        "killed_percent": round(100 * verdicts["killed"] / max(counted, 1), 2),
        "kinds": by_kind,
        "not_killed": [asdict(m) for m in mutants if m.verdict != "killed"],
    }


def rows_of(found):
    """The figures, as `make bench` has them."""
    unexplained = [m for m in found["not_killed"] if not m["reason"]]
    percent = found["killed_percent"]
    return [
        Row("mutants of our own kernels", found["mutants"], 500, at_least=True),
        Row("mutants killed", percent, 95, at_least=True, unit="%", detail=found),
        Row("survivors without a reason", len(unexplained), 0, detail=unexplained),
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", nargs="*", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--each", type=int, default=8, help="mutants of a kind and kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="the folder for the JSON file")
    args = parser.parse_args(arguments)
    start, mutants, about = time.perf_counter(), [], machine.describe()
    for name in args.kernels:
        found = examine(name, args.each, args.seed)
        mutants += found
        print(name, dict(Counter(mutant.verdict for mutant in found)), flush=True)
    result = summary(mutants)
    for mutant in result["not_killed"]:
        print(*mutant.values(), sep=" | ")
    figures = rows_of(result)
    for row in figures:
        print_row(row)
    directory = args.output or results_directory(about)
    if args.output or args.kernels == list(KERNELS):
        write_group("ptxsim_mutants", figures, time.perf_counter() - start, directory)
    return 0 if all(row.ok for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
