"""A sample of the mutants of tests/fuzz; `make mutants` judges more than 500."""

import sys
from pathlib import Path

import pytest
from test_device_headers import needs_nvrtc

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import ptxsim_mutants  # noqa: E402

pytestmark = needs_nvrtc


@pytest.mark.parametrize("name", ["softmax", "column_sum"])
def test_damage_to_a_generated_kernel_is_seen(name):
    mutants = ptxsim_mutants.examine(name, each=2)
    found = ptxsim_mutants.summary(mutants)
    assert len(mutants) >= 15
    assert found["killed_percent"] >= 95, found["not_killed"]
    assert found["kinds"]["barrier"]["killed"] > 0
