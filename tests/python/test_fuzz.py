"""A fixed sample of the random programs of tests/fuzz; `make fuzz` runs many more."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import random_programs  # noqa: E402


@pytest.mark.parametrize("seed", range(1000, 1025))
def test_a_random_program_is_as_accurate_as_eager(seed):
    assert random_programs.check(seed) is None
