"""The notebooks: what they name is public, and no output is committed.

`make notebooks` executes them, which takes minutes.
"""

import ast
import re
from pathlib import Path

import pytest

import torch_stitch

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "benchmarks" / "notebooks").glob("*.py"))
CELL = re.compile(r"^# %%.*$", re.MULTILINE)


def dotted(node):
    """a.b.c of an attribute; what is reached through a call or an item begins with a question."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def names_of(tree):
    """Every name that is imported or reached through an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def hidden_names(text):
    """What is named of the package without being public, and private names of any library."""
    public = {f"torch_stitch.{name}" for name in torch_stitch.__all__}
    names = set(names_of(ast.parse(text)))
    ours = {".".join(x.split(".")[:2]) for x in names if x.startswith("torch_stitch.")}
    private = {x for x in names if re.search(r"(^|\.)_(?!\w*__$)", x)}
    return sorted(private | (ours - public))


def test_there_are_six():
    names = "policies ptxsim quickstart training what_is_fused your_model"
    assert [path.stem for path in NOTEBOOKS] == names.split()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_only_what_is_public(path):
    assert hidden_names(path.read_text()) == []


def test_what_is_hidden_is_found():
    text = "from torch_stitch import _core\ntorch_stitch.backend.trace()\ntorch_stitch.explain()"
    assert hidden_names(text) == ["torch_stitch._core", "torch_stitch.backend"]
    assert hidden_names("super().__init__()\nf(x)._cache") == ["?._cache"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_words_and_explains_its_parts(path):
    cells = CELL.findall(path.read_text())
    assert cells[0] == "# %% [markdown]" and cells.count("# %% [markdown]") >= 4
    assert path.read_text().startswith(f"{cells[0]}\n# # ")


def test_no_output_is_committed():
    assert not list((ROOT / "benchmarks").rglob("*.ipynb"))
