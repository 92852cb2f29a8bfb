"""Writes docs/ops.md and docs/settings.md from the tables of the built core; --check compares."""

import argparse
import sys
from pathlib import Path

from torch_stitch import _core

DOCS = Path(__file__).resolve().parent.parent / "docs"

OPS = """\
# Ops

Made by `tools/make_docs.py` from `csrc/ops/ops.def`; `csrc/ops/op.h` explains the columns. What is
not listed runs as a library call. Further aten ops become these by the decompositions of
`torch_stitch/decompositions.py` and the rules of `torch_stitch/fx_ops.py`.
"""

SETTINGS = """\
# Settings

Made by `tools/make_docs.py` from `csrc/config/settings.def`. An option is given as
`torch.compile(model, backend="stitch", options={"name": value})`; it wins over the environment
variable, which wins over the default.
"""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def ops_page():
    text, families = OPS, {}
    for op in _core.ops():
        families.setdefault(op["family"], []).append(op)
    for family, ops in families.items():
        rows = [
            (f"`{op['name']}`", op["arity"], op["type_rule"], op["cost"], op["aten"], op["doc"])
            for op in ops
        ]
        heads = ("op", "operands", "result type", "cost", "imported from aten", "meaning")
        text += f"\n## {family}\n\n{table(heads, rows)}"
    return text


def settings_page():
    rows = []
    for row in _core.settings():
        default = f"`{row['default']}`" if row["default"] != "" else ""
        variable = f"`{row['env']}`" if row["env"] else ""
        allowed = ", ".join(row["allowed"]) or "any"
        rows.append((f"`{row['name']}`", row["type"], default, allowed, variable, row["doc"]))
    heads = ("name", "type", "default", "allowed", "environment", "meaning")
    return SETTINGS + "\n" + table(heads, rows)


PAGES = {"ops.md": ops_page, "settings.md": settings_page}


def stale_pages():
    """Names of the pages that differ from what would be written."""
    return [
        name
        for name, page in PAGES.items()
        if not (DOCS / name).exists() or (DOCS / name).read_text() != page()
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        stale = stale_pages()
        print(f"stale: {', '.join(stale)} (run tools/make_docs.py)" if stale else "docs are fresh")
        return 1 if stale else 0
    DOCS.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
