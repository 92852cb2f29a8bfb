"""What benchmarks/gpu_kernels.py reads from a profile and says of the clock, without a GPU."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import clock_errors, gpu_kernels, gpu_times  # noqa: E402


def event(name, start, us, kind="kernel"):
    args = {"grid": [8, 1, 1], "block": [256, 1, 1], "registers per thread": 40}
    shown = args if kind == "kernel" else {"bytes": 64}
    return {"ph": "X", "cat": kind, "name": name, "ts": start, "dur": us, "args": shown}


def read(*events):
    host = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 0, "dur": 9}
    return gpu_times.read_trace({"traceEvents": [host, {"ph": "i"}, *reversed(events)]})


def test_calls_that_are_alike_are_grouped_by_position():
    calls = []
    for at in (0, 10, 20):
        calls += [event("a", at, 1 + at), event("set", at + 4, 2, "gpu_memset")]
        calls += [event("a", at + 7, 5)]
    found = gpu_times.group_events(read(*calls), 3)
    assert [(k["name"], k["us"], k["best"], k["count"]) for k in found] == [
        ("a", 11, 1, 1), ("set", 2, 2, 1), ("a", 5, 5, 1)]  # fmt: skip
    assert found[0]["grid"] == [8, 1, 1] and found[0]["registers"] == 40
    assert found[1]["grid"] is None
    assert gpu_times.total_us(found) == 18


def test_calls_that_are_not_alike_are_grouped_by_name():
    found = gpu_times.group_events(read(event("a", 0, 3), event("b", 1, 4), event("a", 2, 5)), 2)
    assert [(k["name"], k["us"], k["count"]) for k in found] == [("a", 4, 1), ("b", 4, 0.5)]
    assert gpu_times.group_events([], 2) == []


def test_the_table_of_the_clock(tmp_path, capsys):
    work = gpu_kernels.list_works(["medium"], "", "bias_gelu")["medium.bias_gelu"]
    kernels = clock_errors.list_kernels(*work.make(), False)
    assert kernels[0]["args"].endswith("64*i32") and "4128768*bf16" in kernels[0]["args"]
    shape = {"grid": [kernels[0]["grid"], 1, 1], "block": [kernels[0]["block"], 1, 1]}
    found = [
        {"name": kernels[0]["name"], "us": 8.0, "count": 1} | shape,
        {"name": "stitch_of_another_plan", "us": 1.0, "count": 1} | shape,
    ]
    for folder, content in (
        ("measured", {"rivals": {"stitch": {"kernels": found}}}),
        ("compiled", {"kernels": kernels}),
    ):
        gpu_kernels.write(tmp_path / folder / "medium.bias_gelu.json", content)
    rows = clock_errors.clock_own(tmp_path, "")
    clock_errors.print_table(rows)
    assert rows[0]["clock_us"] > 3 and rows[1]["error"] == "its text is not known"
    ratio = rows[0]["clock_us"] / 8
    assert clock_errors.summarise(rows)["geometric_mean"] == pytest.approx(ratio)
    assert "medium.bias_gelu" in capsys.readouterr().out


def test_a_line_of_a_function_has_the_ratio(capsys):
    def rival(us):
        return {"us": us, "kernels": [{"count": 1}]}

    rivals = {"eager": rival(9.0), "inductor": rival(6.0), "stitch": rival(3.0)}
    gpu_kernels.print_work(found := {"name": "x", "rivals": rivals})
    line = gpu_kernels.times_of(found)
    assert line["stitch"] == {"us": 3.0, "launches": 1}
    assert gpu_kernels.compare_times([line], "us") == {"x": 2}
    rivals["stitch"] = {"error": "it broke"}
    gpu_kernels.print_work(found)
    assert gpu_kernels.compare_times([gpu_kernels.times_of(found)], "us") == {}
    assert "ratio 2.00" in (out := capsys.readouterr().out) and "it broke" in out


def test_without_a_gpu_it_says_so(tmp_path, capsys):
    if gpu_kernels.torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(SystemExit):
        gpu_kernels.main(["--output", str(tmp_path)])
    assert "there is no GPU to measure" in capsys.readouterr().err


def test_files_are_whole(tmp_path):
    gpu_kernels.write(tmp_path / "new" / "medium.a.json", {"x": 1})
    assert json.loads((tmp_path / "new" / "medium.a.json").read_text()) == {"x": 1}
    assert len(list((tmp_path / "new").iterdir())) == 1
