"""What the benchmarks conclude: accuracy verdicts, ratios, result files."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from test_device_headers import needs_nvrtc  # noqa: E402

from benchmarks import (  # noqa: E402
    accuracy,
    child,
    judge_models,
    measure,
    paper_rows,
    paper_table,
    public_model_figures,
    pytest_summary,
    run,
    run_time_sizes,
    suite_rows,
)
from benchmarks.cases import CASES, ONE_KERNEL, ONE_STITCHED_KERNEL  # noqa: E402
from benchmarks.clock_rows import clock_suite  # noqa: E402
from benchmarks.clock_sizes import clock_sizes, one_less  # noqa: E402
from benchmarks.clock_speed import clock_speed  # noqa: E402
from benchmarks.rows import Request, Row  # noqa: E402
from torch_stitch.measure.timing import time_interleaved  # noqa: E402


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


def test_what_overflows_as_the_exact_number_does_is_right():
    """Eager, which rounds more often, has no number there: two terms overflowed apart."""
    exact = torch.tensor([2e5, 1.0, 2.0], dtype=torch.float64)
    eager = torch.tensor([torch.nan, 1.0, 2.0], dtype=torch.float16)
    assert judge(exact.half(), eager, exact)
    assert not judge(-exact.half(), eager, exact)
    assert not judge(exact.half() * torch.tensor([1, 1, 1.1]).half(), eager, exact)
    assert not judge(exact.half(), eager.nan_to_num(1), exact)


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


@needs_nvrtc
def test_figures_by_the_clock():
    """A kernel whose bytes memory bounds takes little longer than they do."""
    rows = {row.name: row for row in clock_suite(Request(cases=("swiglu_gate",)))}
    what = "micro suite by the clock"
    assert rows[f"{what}, not timed by the clock"].value == 0
    share = rows[f"{what}, compulsory bytes / DRAM rate / time, geometric mean"]
    assert 0.9 < share.value < 1 and share.detail["swiglu_gate"]["launches"] == 1
    assert 20 < rows["swiglu_gate, thread instructions for 16 bytes"].value < 50
    assert 1 <= rows[f"{what}, predictions off by, median"].value < 1.2


def test_kernels_of_a_papers_model_are_counted_without_its_copies_and_calls():
    found = paper_rows.plan_model("lr", "small")
    assert {policy: plans["calls"] for policy, plans in found.items()} == dict.fromkeys(found, 1)
    assert found["loops"]["kernels"] > found["fusionstitching2020"]["kernels"] > 0
    mean, far = paper_rows.figures({"crnn": found})  # AStitch's paper has it, 2020's another batch
    assert mean.value == round(found["astitch"]["kernels"] / found["loops"]["kernels"], 3)
    assert far.value == len(far.detail)


def test_the_papers_table_is_that_of_the_newest_results():
    text = paper_table.DOCS.read_text()
    assert paper_table.fill(text, paper_table.newest()) == text


def test_extents_are_one_less_where_eager_takes_that():
    sizes, kept = one_less(CASES["groupnorm_silu_large"])  # 47 channels are no 12 groups
    assert sizes == {"batch": 1, "channels": 48, "size": 511, "groups": 12}
    assert kept == ["batch", "channels"]
    sizes, kept = one_less(CASES["adamw_foreach"])
    assert sizes == {"tensors": 20, "rows": 255, "cols": 1023} and kept == []


@needs_nvrtc
def test_the_time_that_the_clock_takes_is_of_a_kernel():
    median, slowest = clock_speed(Request(cases=("swiglu_gate", "softmax")))
    assert median.name.endswith("median of 2") and 0 < median.value <= slowest.value
    assert [len(times) for times in median.detail.values()] == [1, 1]


@needs_nvrtc
def test_figures_by_the_clock_at_other_sizes():
    """What memory alone bounds is as fast at any size."""
    rows = {row.name: row for row in clock_sizes(Request(cases=("swiglu_gate",)))}
    for way in ("each extent less one", "all sizes dynamic"):
        what = f"micro suite by the clock, {way}"
        assert rows[f"{what}, not timed by the clock"].value == 0
        mean = rows[f"{what}, over static, geometric mean of 1"]
        assert 0.9 < mean.value < 1.1
        assert mean.value == rows[f"{what}, over static, worst (swiglu_gate)"].value
        plan = mean.detail["cases"]["swiglu_gate"]
        assert plan["over_static"] == mean.value and plan["launches"] == 1


def test_planned_bytes_of_dynamic_sizes_are_compared_with_those_of_static_ones():
    makers = {"softmax": CASES["softmax"].timed, "broken": lambda: (lambda x: x.nope(), (1,))}
    rows = {row.name: row for row in run_time_sizes.byte_rows("suite", makers)}
    failed = rows["suite, not planned with static and with dynamic sizes"]
    assert failed.value == 1 and set(failed.detail) == {"broken"}
    what = "suite, all sizes dynamic, planned bytes over static"
    mean = rows[f"{what}, geometric mean of 1"]
    assert mean.value == rows[f"{what}, worst (softmax)"].value == 1 and mean.ok
    assert rows[f"{what}, above 1.05"].value == 0
    plans = mean.detail["softmax"]
    assert plans["static"]["bytes"] == plans["all sizes dynamic"]["bytes"] == 2 * 5120 * 2048 * 4
    assert plans["all sizes dynamic"]["assumed_sizes"] and plans["static"]["kernels"] == 1
    # Rows that nobody knows the length of are read twice.
    what = "suite, all dynamic, nothing assumed, planned bytes over static"
    worst = rows[f"{what}, worst (softmax)"]
    assert worst.value > 1.4 and worst.ok is None
    assert rows[f"{what}, above 1.05"].detail == {"softmax": worst.value}


def test_variants_are_counted_for_each_kernel_of_a_program():
    count = run_time_sizes.count_variants
    assert count([]) == count([[]]) == 0
    assert count([["stitch_sum_1", "stitch_exp_1"], ["stitch_sum_1", "stitch_exp_1"]]) == 1
    assert count([["stitch_sum_1", "stitch_exp_1"], ["stitch_sum_2", "stitch_exp_1"]]) == 2
    two_norms = [["stitch_sum_1", "stitch_sum_2"], ["stitch_sum_3"], ["stitch_sum_3"]]
    assert count(two_norms) == 2


@needs_nvrtc
def test_kernels_that_calls_have_built_are_counted():
    varied = {"lengths": ([32, 48, 2, 33, 49, 34], lambda length: (2, length))}
    failed, row = run_time_sizes.variant_rows((run_time_sizes.softmax,), varied)
    assert failed.value == 0
    assert row.name == "softmax, variants of a kernel, 6 lengths"
    # A multiple of 8, a longer one, and what may be anything that is small.
    assert row.detail["built_at"] == [32, 48, 2] and row.value == 3 and row.ok


def test_ratio_is_taken_within_a_round():
    times = {"inductor": [2.0, 40.0, 6.0], "stitch": [1.0, 20.0, 2.0]}
    assert measure.ratio(times, "inductor")["median"] == 2.0


def test_interleaved_times_every_rival_in_every_round():
    calls = {"a": lambda x: x + 1, "b": lambda x: x * 2}
    times = time_interleaved(calls, (torch.ones(4),), rounds=3)
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


def draw_of(ours, eager):
    """The exact results are eager's."""
    exact = {name: None if x is None else x.double() for name, x in eager.items()}
    return judge_models.Draw(ours, eager, exact)


def test_results_of_models_are_compared_by_name():
    x, zeros = torch.randn(5), torch.zeros(3)
    eager = {"result 0": x, "gradient of a": None, "gradient of b": zeros + 1}
    ours = {"gradient of b": zeros + 1, "gradient of a": zeros, "result 0": x.clone()}
    for gradient in (zeros, None):
        mine = ours | {"gradient of a": gradient}
        verdict = judge_models.judge_draws([draw_of(mine, eager)] * 2, 2)
        assert verdict["ok"] and verdict["outputs"] == 2 and verdict["worst_rmse_ratio"] == 1.0


@pytest.mark.parametrize("wrong", [
    {"gradient of a": torch.tensor([0.0, 1e-9])},
    {"gradient of a": torch.tensor([0.0, float("nan")])},
    {"gradient of b": None},
    {"gradient of b": torch.zeros(3)},
    {"result 1": torch.zeros(3)},
])  # fmt: skip
def test_a_tensor_on_one_side_alone_must_be_zeros_for_none(wrong):
    eager = {"result 0": torch.ones(2), "gradient of a": None, "gradient of b": torch.ones(3)}
    right = draw_of(eager, eager)
    assert judge_models.judge_draws([right, right], 2)["ok"]
    verdict = judge_models.judge_draws([right, draw_of(eager | wrong, eager)], 2)
    assert not verdict["ok"] and verdict["faults"][0]["output"] == next(iter(wrong))


def test_a_gradient_may_be_none_in_some_draws():
    some = {"gradient of a": torch.ones(3)}
    none = draw_of({"gradient of a": torch.zeros(3)}, {"gradient of a": None})
    assert judge_models.judge_draws([draw_of(some, some), none], 2)["ok"]
    wrong = {"gradient of a": torch.ones(3) * 1.1}
    assert not judge_models.judge_draws([draw_of(wrong, some), none], 2)["ok"]


def test_a_draw_is_at_a_kink_where_most_of_eager_is_far_off():
    exact = {name: torch.randn(1000).double() for name in "abc"} | {"count": torch.tensor(3)}
    eager = {name: (x * (1 + 1e-6)).float() for name, x in exact.items() if name in "abc"}
    eager |= {"count": torch.tensor(3), "none": None}

    def nudged(factor, names):
        far = {name: (exact[name] * (1 + factor * 1e-6)).float() for name in names}
        return eager | far | {"none": None}

    assert judge_models.is_kink(eager, nudged(20, "ab"), exact)
    assert not judge_models.is_kink(eager, nudged(20, "a"), exact)
    assert not judge_models.is_kink(eager, nudged(4, "abc"), exact)
    assert not judge_models.is_kink({"count": eager["count"]}, nudged(1, "abc"), exact)


def test_inputs_are_nudged_where_they_are_floats():
    image, words = torch.randn(4), torch.tensor([1, 2])
    moved = judge_models.nudge(([image], words))
    assert (moved[0][0] > image).all() and torch.allclose(moved[0][0], image) and moved[1] is words
    assert judge_models.nudge((words,)) is None


def test_more_than_half_of_the_draws_at_kinks_is_no_verdict():
    row = {"result 0": torch.ones(2)}
    assert judge_models.judge_draws([draw_of(row, row)], 2)["kinks"] == 1
    assert judge_models.judge_draws([draw_of(row, row)], 2)["ok"]
    assert not judge_models.judge_draws([], 2)["ok"]
    assert not judge_models.judge_draws([draw_of(row, row)] * 5, 12)["ok"]


class Gate(torch.nn.Module):
    """Of two parameters the result depends on one."""

    def __init__(self):
        super().__init__()
        self.used, self.idle = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return [x * self.used]


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_a_model_is_judged_against_eager_and_fp64(mode):
    module = Gate()
    model = judge_models.Model(module, module, (torch.randn(8, 4),), mode)
    answer = judge_models.judge(model, "eager")
    assert answer["ok"] and answer["no_fp64"] is None and answer["eager_error"] < 1e-6
    assert (answer["draws"], answer["kinks"]) == (2, 0)
    assert answer["outputs"] == (1 if mode == "inference" else 3)


def answers_of_models():
    """File name -> answer: two verdicts of three, and one that was timed."""
    counters = {"fallback_ops": 1, "kernels": 5, "library_calls": 7}
    verdict = {"ok": True, "worst_rmse_ratio": 1.23456, "draws": 2, "kinks": 0, "left_whole": 0}
    verdict["seconds"] = 1.0
    return {
        "judge-a-inference": verdict | {"counters": counters, "process_s": 2.0},
        "judge-a-training": {"failed": "exit 1", "stderr": "x"},
        "judge-b-inference": verdict | {
            "ok": False, "worst_rmse_ratio": float("inf"), "counters": counters, "draws": 12},
        "time-a-inference": {
            "ms": {"stitch": {"median": 1.0}},
            "stitch_faster_than": {"eager": {"median": 2.0}, "inductor": {"median": 0.8},
                                   "kernel_per_op": {"median": 0.99}},
            "first_call": {"stitch": {"cpu_s": 1.0}, "inductor": {"cpu_s": 4.0}},
            "peak_bytes": {"stitch": 300, "inductor": 100},
            "failed_rivals": {}},
    }  # fmt: skip


def test_answers_about_models_become_one_file(tmp_path):
    for name, answer in answers_of_models().items():
        (tmp_path / f"{name}.json").write_text(json.dumps(answer))
        assert public_model_figures.line_of(answer)
    names, modes = ("a", "b", "c"), ("inference", "training")
    results = tmp_path / "results"
    for _ in range(2):  # what is recorded is kept, once
        public_model_figures.record(tmp_path, names, modes, results)
        (tmp_path / "judge-a-inference.json").unlink(missing_ok=True)
    (written,) = results.glob("*/public_models.json")
    text = written.read_text()
    found = json.loads(text, parse_constant=pytest.fail)
    rows = {row["name"].removeprefix("public models: "): row for row in found["rows"]}
    assert rows["judged, of 6 models and modes"]["value"] == 3
    assert rows["judged wrong"]["detail"] == ["a training", "b inference"]
    assert rows["judged by more draws"]["value"] == 1 and rows["fallbacks"]["value"] == 2
    assert rows["time over Inductor's, geometric mean"]["value"] == pytest.approx(1.25)
    assert rows["over 1.1 of the better of eager and Inductor"]["value"] == 1
    assert rows["over 1.03 of one kernel per op"]["value"] == 0
    first, failed, infinite = found["table"]
    assert first["judge"]["worst_ratio"] == 1.235 and first["time"]["peak"] == 3.0
    assert failed["judge"] == {"failed": "exit 1"} and infinite["judge"]["worst_ratio"] == "inf"
    assert sum(line.startswith('  {"model"') for line in text.splitlines()) == 3
