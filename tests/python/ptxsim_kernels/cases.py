"""The kernels of this folder as data: what each is launched with and what must be found.

A file is CUDA text.  What stands above the first header belongs to all its kernels; then each
kernel `k` has a header of one line, or of more that begin with `//#+`:

    //# NAME: VERDICT [cooperative] <<<GRID, BLOCK[, SHARED_BYTES]>>> ARGUMENTS [budget=N]

VERDICT is `ok` or the kinds of finding that must be there: `a|b` either, `a+b` a, and b may.
A race may also end in other bits under other orders.  Lines that end in `//!` are where it must be
found; without any, the place is not checked.

ARGUMENTS, with commas between: `int 5`, `float 0.5`, `null`, `stale f32[8]` the address of memory
that is freed, `same 0` argument 0 again, or a tensor: a role (`in`, `out`, `any`), perhaps what it
holds (`zero`, `iota`; else random), its dtype and `[sizes]`, `/pitch` for rows that are apart, `+n`
to start n elements late.  Every tensor is a view into a larger one, so that its ends count and not
those of its storage.
"""

import re
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
MARGIN = 16  # elements before and after a view: what is aligned to a vector stays so
DTYPES = {
    "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "u16": torch.int16,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip

HEADER = re.compile(
    r"//# (?P<name>\w+): (?P<verdict>[\w|+]+) (?P<cooperative>cooperative )?"
    r"<<<(?P<grid>\d+), (?P<block>\d+|dim3\([\d, ]+\))(, (?P<shared>\d+))?>>>"
    r" ?(?P<arguments>.*?)(?P<options>( \w+=\d+)*)$"
)
TENSOR = re.compile(
    r"(?P<role>in|out|any) ((?P<fill>zero|iota) )?(?P<dtype>\w+)"
    r"(\[(?P<sizes>[\dx]+)(/(?P<pitch>\d+))?\])?(\+(?P<late>\d+))?$"
)


@dataclass(frozen=True)
class Case:
    name: str
    source: str  # line n of it is line n of the file
    verdict: str
    grid: int
    block: int | tuple[int, ...]
    shared_bytes: int
    cooperative: bool
    arguments: list[str]
    options: dict[str, int]
    marked: frozenset[int]

    @property
    def required(self):
        """Of these kinds one is found; none: the kernel is innocent."""
        return set() if self.verdict == "ok" else set(self.verdict.split("+")[0].split("|"))

    @property
    def allowed(self):
        consequences = {"nondeterministic"} if "race" in self.required else set()
        return self.required | set(self.verdict.split("+")[1:]) | consequences


@dataclass
class Arguments:
    """What ptxsim.run takes."""

    values: list = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


def random_values(count, dtype):
    if dtype.is_floating_point:
        return torch.randn(count).to(dtype)
    return torch.randint(0, 100, (count,)).to(dtype)


def make_tensor(match, seed):
    torch.manual_seed(seed)
    dtype = DTYPES[match["dtype"]]
    sizes = [int(size) for size in (match["sizes"] or "1").split("x")]
    steps = [1, int(match["pitch"] or sizes[-1]), *reversed(sizes[1:-1])]
    strides = list(accumulate(steps, mul))[len(sizes) - 1 :: -1]
    reach = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    begin = MARGIN + int(match["late"] or 0)
    storage = random_values(begin + reach + MARGIN, dtype)
    if match["fill"]:
        storage.zero_()
    if match["fill"] == "iota":
        storage[begin : begin + reach] = torch.arange(reach)
    return storage.as_strided(sizes, strides, begin)


def make_arguments(case, seed=0):
    made = Arguments()
    freed = []  # when all the others have memory of their own
    for position, text in enumerate(case.arguments):
        word, _, rest = text.partition(" ")
        match = TENSOR.match(text)
        if word in ("int", "float"):
            made.values.append(int(rest) if word == "int" else float(rest))
        elif word == "null":
            made.values.append(0)
        elif word == "stale":
            freed.append(make_tensor(TENSOR.match(f"any {rest}"), seed))
            made.values.append(freed[-1].data_ptr())
        elif word == "same":
            made.values.append(made.values[int(rest)])
        else:
            assert match, f"{case.name}: argument {text!r}"
            made.values.append(make_tensor(match, seed + position))
            if match["role"] != "any":
                (made.inputs if match["role"] == "in" else made.outputs).append(position)
    return made


def parse_case(header, prelude, first_line, body):
    match = HEADER.match(header)
    assert match, f"not a header: {header}"
    sizes = tuple(int(size) for size in re.findall(r"\d+", match["block"].removeprefix("dim3")))
    blank = "\n" * (first_line - 1 - prelude.count("\n"))
    lines = body.split("\n")
    return Case(
        name=match["name"],
        source=prelude + blank + body,
        verdict=match["verdict"],
        grid=int(match["grid"]),
        block=sizes if len(sizes) > 1 else sizes[0],
        shared_bytes=int(match["shared"] or 0),
        cooperative=bool(match["cooperative"]),
        arguments=[text.strip() for text in match["arguments"].split(",") if text.strip()],
        options={k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", match["options"])},
        marked=frozenset(n for n, text in enumerate(lines, first_line) if text.endswith("//!")),
    )


def read_cases(path):
    lines = path.read_text().split("\n")
    starts = [n for n, text in enumerate(lines) if text.startswith("//# ")]
    prelude = "\n".join(lines[: starts[0]]) + "\n"
    cases = []
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        first = start + 1
        while lines[first].startswith("//#+"):
            first += 1
        header = " ".join(text[4:].strip() for text in lines[start:first])
        cases.append(parse_case(f"//# {header}", prelude, first + 1, "\n".join(lines[first:end])))
    return cases


def all_cases():
    """{file/name: case} of the whole folder."""
    files = sorted(FOLDER.glob("*.cu"))
    return {f"{path.stem}/{case.name}": case for path in files for case in read_cases(path)}
