"""The figures that must show, one function per group; each yields its rows and leaves details.

A figure with a limit passes when `value` is on the right side of it; one that could not be
measured says why in `value` and has no verdict.
"""

import dataclasses
import json
import re
import statistics
import subprocess
import sys

import torch

import torch_stitch
from benchmarks import bert, machine, measure
from benchmarks.cases import CASES, ONE_KERNEL
from benchmarks.child import RIVALS, call_child, fresh_caches, temporary_directory
from benchmarks.large_graphs import SHAPES
from torch_stitch.measure.timing import spread

PLANNED_FOR = "h200"
# What the yardstick counts as library work; every other call is a launch like a kernel.
LIBRARY = re.compile(r"aten\.(addmm|mm|bmm|baddbmm|convolution|_?scaled_dot_product)")


@dataclasses.dataclass
class Row:
    name: str
    value: float | str
    limit: float | None = None
    at_least: bool = False
    unit: str = ""
    detail: object = None

    @property
    def ok(self):
        if isinstance(self.value, str):
            return False if self.value.startswith("failed") else None
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclasses.dataclass
class Request:
    """What the command line asks for."""

    rounds: int = 9
    threads: int = torch.get_num_threads()
    yardstick: str | None = None
    cases: tuple = tuple(CASES)


def plan_of(fn, inputs, target=PLANNED_FOR):
    return json.loads(torch_stitch.explain(fn, *inputs, target=target).to_json())


def kernels_of(plan):
    """Launches that are no matrix product, convolution or attention."""
    others = [call for call in plan["library_calls"] if not LIBRARY.match(call["name"])]
    return len(plan["kernels"]) + len(others)


def planned_kernels(request):
    """Launches and bytes of the subgraphs that one kernel must cover."""
    details = {}
    for name in ONE_KERNEL:
        if name not in request.cases:
            continue
        try:
            plan = plan_of(*CASES[name].planned())
        except Exception as error:
            details[name] = {"error": str(error)[-2000:]}
            continue
        details[name] = {
            "kernels": len(plan["kernels"]),
            "launches": plan["launches"],
            "bytes_ratio": plan["bytes_planned"] / plan["bytes_compulsory"],
            "registers": [kernel["registers"] for kernel in plan["kernels"]],
            "spill_bytes": [kernel["spill_bytes"] for kernel in plan["kernels"]],
            "cuts": plan["cuts"],
        }
    good = [d for d in details.values() if "error" not in d]
    alone = [d["launches"] == d["kernels"] == 1 for d in good]
    planned = f"planned for {PLANNED_FOR}"
    yield Row(
        f"subgraphs {planned} as one kernel and nothing else",
        sum(alone), len(details), at_least=True, detail=details,
    )  # fmt: skip
    if good:
        worst = max(d["bytes_ratio"] for d in good)
        yield Row(f"bytes_planned / bytes_compulsory, {planned}, worst", round(worst, 3), 1.05)


def bert_layer(request):
    for batch, limit in ((1, 5), (8, 6)):
        plan = plan_of(*bert.bert_layer(batch))
        kernels = [{"name": k["name"], "ops": k["ops"]} for k in plan["kernels"]]
        detail = {"kernels": kernels, "calls": [c["name"] for c in plan["library_calls"]]}
        detail["cuts"] = plan["cuts"]
        yield Row(f"BERT layer, batch {batch}, kernels", kernels_of(plan), limit, detail=detail)


def compare(request, *arguments):
    """compare.py's rows and the lines it prints."""
    with temporary_directory() as directory:
        table = f"{directory}/compare.json"
        done = subprocess.run(
            [sys.executable, "compare.py", "--json", table, *arguments],
            cwd=request.yardstick, capture_output=True, text=True, env=measure.environment(),
        )  # fmt: skip
        lines = done.stdout.splitlines()
        if not lines or " failed;" not in lines[-1]:
            raise RuntimeError(f"compare.py: {done.stderr[-2000:]}")
        with open(table) as file:
            return json.load(file), lines


def yardstick(request):
    """compare.py's own summary: its last two lines."""
    names = ("yardstick, against XLA", "yardstick, against Inductor")
    if not request.yardstick:
        yield from (Row(name, "skipped: no --yardstick folder") for name in names)
        return
    rows, lines = compare(request)
    broken = [line.strip() for line in lines if " failed: " in line]
    yield Row("yardstick, cases that failed", int(re.search(r"(\d+) failed", lines[-1])[1]), 0,
              detail={"failed": broken})  # fmt: skip
    yield Row(names[0], lines[-2])
    yield Row(names[1], lines[-1], detail={"rows": rows})


# The papers' own figures are against XLA of their day, on their models.
POLICIES = {"auto": None, "astitch": 0.343, "fusionstitching2020": 0.38}


def policies(request):
    """Inference graphs of the yardstick under each policy alone: kernels over those of others."""
    if not request.yardstick:
        yield Row("policies", "skipped: no --yardstick folder")
        return
    for policy, papers in POLICIES.items():
        rows, lines = compare(request, "--mode", "inference", "--policy", policy)
        found = re.search(r"kernels ([\d.]+) \(worst ([\d.]+)\), bytes ([\d.]+)", lines[-1])
        over_xla = float(re.search(r"kernels ([\d.]+)", lines[-2])[1])
        limits = (0.70, 1.0, 0.9, 0.5) if policy == "auto" else (None, None, None, 0.75)
        kernels, worst, moved = (float(number) for number in found.groups())
        yield Row(f"{policy}, kernels over Inductor's", kernels, limits[0], detail={"rows": rows})
        yield Row(f"{policy}, worst case", worst, limits[1])
        yield Row(f"{policy}, bytes over Inductor's", moved, limits[2])
        yield Row(f"{policy}, kernels over XLA's", over_xla, limits[3],
                  detail={"paper": papers})  # fmt: skip


def predicted_policies(request):
    """The micro suite under each paper's policy alone, over `auto`'s time, by the model."""
    limits = {"fusionstitching2020": 1.12, "astitch": 1.05}
    found = call_child(
        "predict_policies", target=PLANNED_FOR, names=list(request.cases),
        policies=["auto", *limits],
    )  # fmt: skip
    for policy, limit in limits.items():
        ratios = {name: us[policy]["us"] / us["auto"]["us"] for name, us in found.items()}
        worst = max(ratios, key=ratios.get)
        mean = round(measure.geometric_mean(list(ratios.values())), 3)
        name = f"{policy}, predicted time over auto's"
        yield Row(f"{name}, geometric mean of {len(ratios)}", mean, limit, detail=found)
        yield Row(f"{name}, worst ({worst})", round(ratios[worst], 2), 2.2)


def rival_times(request, keep_freed_memory):
    """name -> what time_case answers, for every subgraph."""
    answers = {}
    for name in request.cases:
        try:
            answers[name] = call_child(
                "time_case", keep_freed_memory=keep_freed_memory, name=name,
                rounds=request.rounds, threads=request.threads,
            )  # fmt: skip
        except Exception as error:
            answers[name] = {"failed": {"stitch": str(error)[-2000:]}}
    return answers


def ratios_of(answers, rival="inductor"):
    return {
        name: answer["stitch_faster_than"][rival]["median"]
        for name, answer in answers.items()
        if rival in answer.get("stitch_faster_than", {})
    }


def time_rows(answers, what, mean_limit, worst_limit=None):
    ratios = ratios_of(answers)
    where = machine.device().upper()
    yield Row(
        f"{where} time of Inductor / stitch, {what}, geometric mean",
        round(measure.geometric_mean(list(ratios.values())), 3), mean_limit,
        at_least=True, unit="x", detail=answers,
    )  # fmt: skip
    if ratios:
        worst = min(ratios, key=ratios.get)
        name = f"{where} time of Inductor / stitch, {what}, worst ({worst})"
        yield Row(name, round(ratios[worst], 3), worst_limit, at_least=True, unit="x")
    missing = [name for name in answers if name not in ratios]
    wrong = [
        name
        for name, answer in answers.items()
        if not answer.get("accuracy", {}).get("stitch", {"ok": False})["ok"]
    ]
    yield Row(f"subgraphs not timed, {what}", len(missing), 0, detail=missing)
    yield Row(f"subgraphs less accurate than eager allows, {what}", len(wrong), 0, detail=wrong)


def one_thread(request):
    return ", one thread" if request.threads == 1 else ""


def time_as_used(request):
    what = "as a user runs it" + one_thread(request)
    yield from time_rows(rival_times(request, False), what, 1.5)


def time_without_faults(request):
    if machine.device() == "cuda":
        return
    what = "malloc keeps memory" + one_thread(request)
    yield from time_rows(rival_times(request, True), what, 1.25, worst_limit=0.9)


def tiny_ops(request):
    answer = call_child("time_tiny", rounds=request.rounds, threads=request.threads)
    ratio = answer["stitch_faster_than"]["inductor"]["median"]
    name = "30 pointwise ops on 16 elements, time of Inductor / stitch"
    yield Row(name, round(ratio, 3), 1.0, at_least=True, unit="x", detail=answer)


def cold_compile(request, repeats=3):
    seconds = {name: [] for name in RIVALS[1:]}
    for _ in range(repeats):
        for name in seconds:
            with temporary_directory() as directory:
                answer = call_child("compile_cold", rival=name, environment=fresh_caches(directory))
            seconds[name].append(answer["seconds"])
    ratio = statistics.median(ours / theirs for theirs, ours in zip(*seconds.values()))
    name = "BERT-base cold compile, seconds of stitch / Inductor"
    yield Row(name, round(ratio, 3), 1.0, detail=seconds)


def planner(request):
    """The core's own stages, kernels' compilers left out."""
    for target in ("cpu", PLANNED_FOR):
        stages = call_child("stages_of_bert", target=target)
        own = sum(ms for name, ms in stages.items() if name not in ("trace_and_import", "compile"))
        name = f"BERT-base planner and code generation for {target}"
        yield Row(name, round(own / 1e3, 3), 1.0, unit="s", detail=stages)


def planner_large(request):
    """Graphs that no library call divides; the slowest shape counts."""
    for nodes, limit in ((1_000, 0.25), (10_000, 3.0)):
        shapes = {
            shape: call_child("plan_large", shape=shape, nodes=nodes, target=PLANNED_FOR)
            for shape in SHAPES
        }
        worst = max(shapes, key=lambda shape: shapes[shape]["plan"])
        name = f"planning, {nodes:,} nodes, worst shape ({worst} for {PLANNED_FOR})"
        yield Row(name, round(shapes[worst]["plan"], 3), limit, unit="s", detail=shapes)


def optimizer_step(request, tensors=400):
    """A step of AdamW over the tensors of a model's layers."""
    name = f"AdamW of {tensors} tensors for {PLANNED_FOR}"
    if skipped := skip_without_nvrtc(name):
        yield skipped
        return
    step = call_child("compile_optimizer", target=PLANNED_FOR, tensors=tensors)
    yield Row(f"{name}, launches", step["launches"], 2, detail=step)
    yield Row(f"{name}, from the graph to its binary", round(step["seconds"], 3), 3, unit="s")


def nvrtc(request):
    with temporary_directory() as directory:
        kernels = call_child(
            "nvrtc_kernels", target=PLANNED_FOR, environment=fresh_caches(directory)
        )
    if any(kernel["registers"] < 0 for kernel in kernels.values()):
        yield Row("NVRTC, median kernel of BERT-base", "skipped: NVRTC was not found")
        return
    median = statistics.median(kernel["compile_ms"] for kernel in kernels.values())
    spilled = sum(kernel["spill_bytes"] for kernel in kernels.values())
    name = f"NVRTC for {PLANNED_FOR}, median of {len(kernels)} kernels of BERT-base"
    yield Row(name, round(median, 1), 150, unit="ms", detail=kernels)
    yield Row("bytes spilled by the kernels of BERT-base", spilled, 0)


def warm_process(request):
    """A second process must find every kernel on disk."""
    for target in (None, PLANNED_FOR):
        with temporary_directory() as directory:
            caches = fresh_caches(directory)
            first = call_child("count_misses", target=target, environment=caches)
            second = call_child("count_misses", target=target, environment=caches)
        name = f"compiler calls of a second process, {target or machine.device()}"
        yield Row(name, second["cache_misses"], 0, detail={"first": first, "second": second})


def skip_without_nvrtc(name):
    """The row that says so, where nothing can be simulated."""
    if torch_stitch._core.nvrtc_available()[0]:
        return None
    return Row(name, "skipped: NVRTC was not found")


def ptxsim_speed(request, repeats=5):
    """Lane instructions per second of one core's CPU time."""
    if reason := skip_without_nvrtc("ptxsim, residual layer norm"):
        yield reason
        return
    for what, limit in (("without checks", 1000), ("with checks", 150)):
        answer = call_child("measure_rate", what=what, repeats=repeats)
        rates = [answer["lane_instructions"] / seconds / 1e6 for seconds in answer["seconds"]]
        found = spread(rates) | {"best": max(rates)}
        yield Row(
            f"ptxsim, residual layer norm {what}, million lane instructions per second",
            round(found["median"], 1), limit, at_least=True, detail=answer | {"rates": found},
        )  # fmt: skip


GROUPS = {
    group.__name__: group
    for group in (
        planned_kernels,
        bert_layer,
        yardstick,
        policies,
        predicted_policies,
        time_as_used,
        time_without_faults,
        tiny_ops,
        cold_compile,
        planner,
        planner_large,
        optimizer_step,
        nvrtc,
        warm_process,
        ptxsim_speed,
    )
}
