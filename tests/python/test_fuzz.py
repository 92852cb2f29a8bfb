"""A fixed sample of the random programs of tests/fuzz; `make fuzz` runs many more."""

import sys
import warnings
from pathlib import Path

import pytest
import torch

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


def test_a_sweep_pools_more_draws_only_where_accuracy_alone_is_missed(monkeypatch):
    pytest.importorskip("numpy", reason="torch's sample lists need numpy")
    import opinfo_sweep

    x = torch.ones(4)
    missed, wrong = (x * 1.001, x, x, x.double()), (x[:3], x, x, x.double())
    for found, may_be_luck in (("rmse_ratio: no such name", False), ([[missed]], True),
                               ([[wrong]], False)):  # fmt: skip
        monkeypatch.setattr(opinfo_sweep, "outcomes", lambda *_, found=found: found)
        (fault,) = opinfo_sweep.faults_of(None, [(x, ("rmse_ratio",), {})], "stitch")
        assert fault.may_be_luck == may_be_luck, fault


def test_a_sweep_says_before_each_graph_that_it_goes_on(monkeypatch):
    pytest.importorskip("numpy", reason="torch's sample lists need numpy")
    import opinfo_sweep

    op = next(op for op in opinfo_sweep.op_db if op.name == "nn.functional.relu6")
    steps = []
    monkeypatch.setattr(opinfo_sweep, "faults_of", lambda *_: steps.append("graph"))
    row = opinfo_sweep.sweep(op, torch.float32, "cpu", 2, lambda: steps.append("goes on"))
    assert row["samples"] > 2 and steps == ["goes on", "graph"] * -(-row["samples"] // 2)
