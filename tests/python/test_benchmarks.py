"""What the benchmarks conclude: accuracy verdicts, ratios, result files."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from test_device_headers import needs_nvrtc  # noqa: E402

from benchmarks import accuracy, child, measure, pytest_summary, run, suite_rows  # noqa: E402
from benchmarks.cases import CASES, ONE_KERNEL, ONE_STITCHED_KERNEL  # noqa: E402
from benchmarks.rows import Request, Row  # noqa: E402


@pytest.fixture
def sums():
    """fp32 sums as eager makes them, and the exact ones."""
    x = torch.randn(64, 1000)
    return x.sum(1), x.double().sum(1)


def judge(result, eager, exact, terms=1000):
    return accuracy.judge(result, eager, exact, terms)["ok"]


def test_eagers_own_result_passes(sums):
    assert judge(sums[0], *sums)
    assert judge(sums[0] * (1 + 2**-24), *sums)


def test_one_wrong_element_fails(sums):
    wrong = sums[0].clone()
    wrong[7] += 0.1
    assert not judge(wrong, *sums)


def test_three_times_the_error_fails(sums):
    eager, exact = sums[0] + 1e-4, sums[1]
    assert judge((exact + 1.9e-4).float(), eager, exact)
    assert not judge((exact + 3e-4).float(), eager, exact)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_must_be_the_same(sums, value):
    eager, exact = sums[0].clone(), sums[1].clone()
    eager[3] = exact[3] = value
    assert judge(eager.clone() * (1 + 2**-23), eager, exact)
    assert not judge(sums[0], eager, exact)


def test_layout_and_dtype_are_eagers(sums):
    assert not judge(sums[0].double(), *sums)
    square = torch.randn(8, 8)
    assert not judge(square.t().contiguous().t(), square, square.double())


def test_integers_may_differ_by_a_tie():
    eager = torch.tensor([1, 2, 3], dtype=torch.int8)
    exact = torch.tensor([1, 3, 3], dtype=torch.int8)
    assert judge(exact, eager, exact)
    assert not judge(eager + 2, eager, exact)


def test_fp64_reference_widens_functions_and_modules():
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    assert accuracy.in_fp64(layer, (x,)).dtype == torch.float64
    assert layer.weight.dtype == torch.float32


def moved_bytes(make, vocabulary):
    """Of the tensors that a subgraph reads and answers with; of a table what is asked for moves."""
    with torch.device("meta"):
        fn, inputs = make()
        results = fn(*inputs)
    leaves = [x for x in tree_leaves((inputs, results)) if x is not None]
    return sum(x.nbytes for x in leaves if x.dim() < 2 or x.shape[0] != vocabulary)


@pytest.mark.parametrize("name", CASES)
def test_sizes_move_what_they_say(name):
    case = CASES[name]
    vocabulary = case.planning.get("vocabulary")
    assert 48e6 < moved_bytes(case.timed, vocabulary) < 128e6
    assert 8e6 < moved_bytes(case.of_medium_size, vocabulary) < 24e6


@needs_nvrtc
def test_the_micro_suite_moves_what_it_must_by_wide_accesses():
    names = ("bias_gelu", "layernorm", "sums_and_max", "adamw_foreach")
    for name, widths in child.count_bytes(names).items():
        assert sum(widths.values()) > 8e6 and suite_rows.wide_share([widths]) > 0.95, (name, widths)


@needs_nvrtc
def test_figures_of_the_micro_suite():
    request = Request(cases=("swiglu_gate", "reduce_64x30000"))
    rows = [row for group in suite_rows.GROUPS.values() for row in group(request)]
    assert all(row.ok is not False for row in rows), rows
    kernels = {row.name.split()[-1]: row.value for row in rows if "kernels of 2 sub" in row.name}
    # 64 rows are split over more blocks: a barrier apart, or a launch where the policy has none.
    assert kernels == {"auto": 2, "astitch": 2, "fusionstitching2020": 3, "none": 7}


def test_ratio_is_taken_within_a_round():
    times = {"inductor": [2.0, 40.0, 6.0], "stitch": [1.0, 20.0, 2.0]}
    assert measure.ratio(times, "inductor")["median"] == 2.0


def test_interleaved_times_every_rival_in_every_round():
    calls = {"a": lambda x: x + 1, "b": lambda x: x * 2}
    times = measure.time_interleaved(calls, (torch.ones(4),), rounds=3)
    assert {name: len(values) for name, values in times.items()} == {"a": 3, "b": 3}
    assert all(value > 0 for values in times.values() for value in values)


def test_rows_are_on_the_right_side_of_their_limit():
    assert Row("x", 1.0, 1.0).ok and Row("x", 1.0, 1.0, at_least=True).ok
    assert Row("x", 1.1, 1.0).ok is False and Row("x", 0.9, 1.0, at_least=True).ok is False
    assert Row("x", 5.0).ok is None and Row("x", "skipped: y").ok is None
    assert Row("x", "failed: y").ok is False


def test_a_partial_run_leaves_other_results(tmp_path, capsys):
    (tmp_path / "nvrtc.json").write_text("kept")
    assert run.main(["--only", "yardstick", "--output", str(tmp_path)]) == 0
    assert "skipped" in capsys.readouterr().out
    found = json.loads((tmp_path / "yardstick.json").read_text())
    assert found["torch"] == torch.__version__ and len(found["rows"]) == 2
    assert (tmp_path / "nvrtc.json").read_text() == "kept"
    assert str(Path.home()) not in json.dumps(found)


def test_every_case_that_must_be_one_kernel_exists():
    assert set(ONE_KERNEL) < set(ONE_STITCHED_KERNEL) <= set(CASES)
    assert {"planned_kernels", "suite_bytes", "workload_times"} <= run.GROUPS.keys()


def test_a_run_of_pytest_becomes_figures(tmp_path, capsys):
    xml = tmp_path / "junit.xml"
    cases = """<testcase classname="a" name="x"/><testcase classname="a" name="y">
      <failure message="InternalError: ptxsim found 3 defects"/></testcase>
      <testcase classname="b" name="z"><skipped message="no GPU"/></testcase>"""
    xml.write_text(f'<testsuites><testsuite time="1.5">{cases}</testsuite></testsuites>')
    assert pytest_summary.main(["runs", str(xml), "--output", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "runs.json").read_text())
    assert [row["value"] for row in found["rows"]] == [1, 1, 1, 3]
    assert found["seconds"] == 1.5 and found["rows"][2]["detail"] == {"no GPU": 1}
    assert "SHORT" in capsys.readouterr().out
