"""Which files of the repository the checks read, and C++ text without what is not code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("csrc", "torch_stitch", "tests", "benchmarks", "tools")
CPP_SUFFIXES = (".h", ".cpp", ".cuh")


def list_sources(root: Path, *suffixes: str) -> list[str]:
    """Paths relative to `root` of the files with one of the suffixes, sorted."""
    found = [path for path in root.glob("*.py")]
    for folder in FOLDERS:
        found += (root / folder).rglob("*")
    names = (path.relative_to(root).as_posix() for path in found if path.suffix in suffixes)
    return sorted(name for name in names if (root / name).is_file())


NOT_CODE = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<character>(?<![0-9A-Fa-f])'(?:\\.[^']*|[^'\\\n])')""",
    re.S | re.X,
)


def strip_comments(text: str, *, strip_literals: bool = False) -> str:
    """C++ text without comments, and with literals emptied if asked; line numbers stay."""

    def replace(match: re.Match) -> str:
        found = match.group()
        if match["comment"] is None and not strip_literals:
            return found
        lines = "\n" * found.count("\n")
        return lines if match["comment"] is not None else f'"{lines}"'

    return NOT_CODE.sub(replace, text)
