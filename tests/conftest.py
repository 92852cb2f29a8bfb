"""What all tests share: the gpu marker, golden files, and a seed that a failure names."""

import os
import random
from pathlib import Path

import pytest
import torch

GOLDEN = Path(__file__).parent / "golden"
SEED = int(os.environ.get("STITCH_TEST_SEED", "0"))


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU; skipped without one")


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    without_gpu = pytest.mark.skip(reason="no NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(without_gpu)


def pytest_report_header():
    return f"torch {torch.__version__}, STITCH_TEST_SEED={SEED}"


@pytest.fixture(autouse=True)
def seed():
    """Every test draws the same numbers, whatever ran before it."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    return SEED


@pytest.fixture
def golden(request):
    """golden("plan/softmax.txt", text) compares with that file of tests/golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: read the text, then run with --update-golden"
        assert text == path.read_text(), f"differs from {path}: --update-golden accepts the change"

    return compare
