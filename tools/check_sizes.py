"""Keeps files, functions, parameter lists, folders and lines small.

The limits are the tables below.  Hard limits fail; --soft also prints what is over a soft limit.
An exception is a row of EXCEPTIONS with its reason, and fails once it is no longer needed; totals
have none.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from cpp_functions import Function, find_functions
from source_files import CPP_SUFFIXES, ROOT, list_sources


class Limit(NamedTuple):
    pattern: str  # of paths: `*` also matches `/`, the first row that matches counts
    soft: int
    hard: int


FILE_LINES = [
    Limit("csrc/compile.cpp", 150, 150),
    Limit("csrc/*.cuh", 200, 400),
    Limit("csrc/*.h", 80, 200),
    Limit("csrc/*.cpp", 250, 500),
    Limit("tests/*", 300, 600),
    Limit("*.py", 250, 400),
]
TOTAL_LINES = [
    Limit("csrc/device/*", 2_500, 2_500),
    Limit("csrc/ptxsim/*", 11_500, 11_500),
    Limit("csrc/clock/*", 3_820, 3_820),
    Limit("csrc/*", 28_500, 28_500),
    Limit("torch_stitch/measure/*", 900, 900),
    Limit("torch_stitch/*", 1_734, 1_734),
]
TOTAL = "lines in all"
ROOM_FILES = [Limit("csrc/*", 12, 16)]  # a header and its .cpp count once
FUNCTION_LINES = [Limit("csrc/*", 40, 60), Limit("*", 40, 80)]
PARAMETERS = [Limit("*", 4, 6)]
LINE_COLUMNS = [Limit("*", 100, 100)]

# (path, what): reason.  `what` is as printed, or a pattern: "lines", "plan_stitches() lines", ...
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("csrc/host_ops/register_decompositions.cpp", "* parameters"): "the signatures are aten's",
    ("torch_stitch/fx_ops.py", "* parameters"): "the signatures are those of aten's ops",
}


class Size(NamedTuple):
    path: str
    line: int
    what: str
    value: int
    limit: Limit


def limit_of(path: str, limits: list[Limit]) -> Limit | None:
    return next((limit for limit in limits if fnmatch(path, limit.pattern)), None)


def python_functions(text: str) -> Iterator[Function]:
    """`self` and `cls` are no parameters; a nested function counts in its parent and by itself."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
            count = len([name for name in names if name not in ("self", "cls")])
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, count)


def measure_file(path: str, text: str) -> Iterator[Size]:
    lines = text.splitlines()
    limit = limit_of(path, FILE_LINES)
    if limit:
        yield Size(path, 1, "lines", len(lines), limit)
    for number, line in enumerate(lines, start=1):
        yield Size(path, number, "columns", len(line), limit_of(path, LINE_COLUMNS))
    if path.endswith(".def"):
        return
    for function in python_functions(text) if path.endswith(".py") else find_functions(text):
        for what, value, limits in (
            ("lines", function.length, FUNCTION_LINES),
            ("parameters", function.parameters, PARAMETERS),
        ):
            named = f"{function.name}() {what}"
            yield Size(path, function.line, named, value, limit_of(path, limits))


def measure_folders(texts: dict[str, str]) -> Iterator[Size]:
    totals: Counter[Limit] = Counter()
    for path, text in texts.items():
        limit = limit_of(path, TOTAL_LINES)
        if limit:
            totals[limit] += len(text.splitlines())
    for limit, lines in totals.items():
        yield Size(limit.pattern, 0, TOTAL, lines, limit)
    stems = {str(Path(path).with_suffix("")) for path in texts}
    files = Counter(str(Path(stem).parent) for stem in stems)
    for folder, count in sorted(files.items()):
        limit = limit_of(folder, ROOM_FILES)
        if limit:
            yield Size(folder, 0, "files (pairs count once)", count, limit)


def measure_tree(root: Path) -> list[Size]:
    names = list_sources(root, *CPP_SUFFIXES, ".def", ".py")
    texts = {name: (root / name).read_text() for name in names}
    sizes = list(measure_folders(texts))
    for path, text in texts.items():
        sizes += measure_file(path, text)
    return sizes


def describe(size: Size, limit: int) -> str:
    place = f"{size.path}:{size.line}" if size.line else size.path
    return f"{place}: {size.what}: {size.value}, limit {limit}"


def is_excepted(size: Size, row: tuple[str, str]) -> bool:
    return size.what != TOTAL and size.path == row[0] and fnmatch(size.what, row[1])


def hard_faults(sizes: list[Size], exceptions: dict[tuple[str, str], str]) -> list[str]:
    faults, used = [], set()
    for size in sizes:
        if size.value > size.limit.hard:
            rows = [row for row in exceptions if is_excepted(size, row)]
            used.update(rows)
            if not rows:
                faults.append(describe(size, size.limit.hard))
    unused = [row for row in exceptions if row not in used]
    return faults + [f"{path}: the exception for {what!r} is not needed" for path, what in unused]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soft", action="store_true", help="also print what is over a soft limit")
    is_soft = parser.parse_args().soft
    sizes = measure_tree(ROOT)
    if is_soft:
        for size in sizes:
            if size.limit.soft < size.value <= size.limit.hard:
                print(describe(size, size.limit.soft) + " (soft)")
    faults = hard_faults(sizes, EXCEPTIONS)
    for fault in faults:
        print(fault)
    print(f"check_sizes: {len(faults)} over a limit" if faults else "check_sizes: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
