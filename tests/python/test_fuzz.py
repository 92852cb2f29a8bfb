"""A fixed sample of the random programs of tests/fuzz; `make fuzz` runs many more."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import random_programs  # noqa: E402

BATCH = random_programs.BATCH


@pytest.mark.parametrize("first", range(125 * BATCH, 129 * BATCH, BATCH))
def test_random_programs_are_as_accurate_as_eager(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert random_programs.check_batch(range(first, first + BATCH)) == {}


def test_random_programs_are_right_on_ptxsim():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert random_programs.check_batch(range(5 * BATCH, 6 * BATCH), simulate=True) == {}
