"""The documents say what the code does: generated pages are fresh, what they name exists."""

import re
import sys
from pathlib import Path

import pytest

from torch_stitch import _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_docs  # noqa: E402
import show  # noqa: E402

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
FILE = re.compile(r"`((?:csrc|torch_stitch|tests|tools|benchmarks|docs)/[\w./]+\.\w+)`")
VARIABLE = re.compile(r"TORCH_STITCH_\w+")


def test_generated_pages_are_fresh():
    assert make_docs.stale_pages() == []


def test_pages_list_every_row():
    assert all(f"| `{op['name']}` |" in make_docs.ops_page() for op in _core.ops())
    assert all(f"| `{row['name']}` |" in make_docs.settings_page() for row in _core.settings())


def test_table_escapes_bars():
    assert make_docs.table(["a"], [["x | y"]]) == "| a |\n| --- |\n| x \\| y |\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    missing = [name for name in FILE.findall(page.read_text()) if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_variables_exist(page):
    known = {row["env"] for row in _core.settings()}
    assert set(VARIABLE.findall(page.read_text())) <= known


@pytest.fixture
def example(tmp_path):
    text = "import torch\ndef make():\n    return lambda x: x.softmax(-1), (torch.ones(8, 16),)\n"
    path = tmp_path / "example.py"
    path.write_text(text)
    return f"{path}:make"


# What each stage of a softmax must hold.
STAGES = {
    "graph": "exp(",
    "rewrite": "exp(",
    "plan": "kernel 0",
    "schedule": "loop",
    "emit": "STITCH_KERNEL(",
}


@pytest.mark.parametrize("target", ["cpu", "h200"])
@pytest.mark.parametrize("stage", show.STAGES)
def test_show_prints_every_stage(example, stage, target, capsys):
    assert show.main([example, "--stage", stage, "--target", target]) == 0
    assert STAGES[stage] in capsys.readouterr().out
