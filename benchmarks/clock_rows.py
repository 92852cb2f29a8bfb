"""Figures by the clock (docs/clock.md): our kernels for an H200, and Inductor's, without a GPU."""

import functools
import statistics
from pathlib import Path

import torch
from torch.nn import functional as F

import torch_stitch
from benchmarks import gpu_cubins, measure
from benchmarks.cases import CASES
from benchmarks.clock_errors import ask_about_cubin
from benchmarks.rows import LIBRARY, PLANNED_FOR, Row
from torch_stitch.measure.backends import own_copy

DRAM_BYTES_PER_US = 4.07e6  # csrc/cost/device_spec.cpp
LAUNCH_US = 2.5
# Thread instructions for 16 bytes that must move, of kernels in bf16: a multiprocessor issues 124
# in that time.
BUDGETS = {
    "softmax": 75, "bias_gelu": 60, "swiglu_gate": 50, "groupnorm_silu": 90, "cross_entropy": 110,
    "masked_softmax_dropout": 110,
}  # fmt: skip
HARD = ("softmax_dim0", "groupnorm_silu_large")  # rows that no block holds
WITHOUT_LIMIT = ("segment_softmax_sorted", "segment_softmax_unsorted")  # of segments nobody knows


def time_plan(fn, inputs, is_training=False):
    """Kernels, other calls and bytes of both passes; "us": kernels by the clock, calls by bytes."""
    torch._dynamo.reset()
    report = torch_stitch.explain(
        own_copy(fn), *inputs, target=PLANNED_FOR, training=is_training, clock=True
    )
    passes = [report.plan["forward"], report.plan["backward"]] if is_training else [report.plan]
    kernels = [kernel for part in passes for kernel in part["kernels"]]
    calls = [call for part in passes for call in part["library_calls"]]
    calls = [call for call in calls if not LIBRARY.match(call["name"])]
    moved = sum(call["bytes_read"] + call["bytes_written"] for call in calls)
    return {
        "us": sum(k["clock_us"] for k in kernels) + moved / DRAM_BYTES_PER_US,
        "launches": sum(k["launches"] for k in kernels) + len(calls),
        "bytes_compulsory": sum(part["bytes_compulsory"] for part in passes),
        "instructions": sum(k["instructions"] for k in kernels),
        "kernels": [
            {key: k[key] for key in ("name", "clock_us", "predicted_us", "bound", "registers")}
            for k in kernels
        ],
    }


@functools.cache
def time_static(name):
    return time_plan(*CASES[name].timed())


def time_all(makers):
    """name -> what time_plan says, or its error."""
    found = {}
    for name, make in makers.items():
        torch.manual_seed(0)
        try:
            found[name] = make()
        except Exception as error:
            found[name] = {"error": " ".join(str(error).split())[:300]}
    return found


def good(found):
    return {name: plan for name, plan in found.items() if "error" not in plan}


def failures(what, found, failed="not timed by the clock"):
    errors = {name: plan["error"] for name, plan in found.items() if "error" in plan}
    return Row(f"{what}, {failed}", len(errors), 0, detail=errors)


def budgeted(name):
    """Function and inputs: GELU by tanh and the loss alone; the cases have erf and a gradient."""
    fn, inputs = CASES[name].planned()
    if name == "bias_gelu":
        return lambda x, bias: F.gelu(x + bias, approximate="tanh"), inputs
    return F.cross_entropy if name == "cross_entropy" else fn, inputs


def clock_suite(request):
    """What of its time the compulsory bytes would take, and instructions, of the micro suite."""
    what = "micro suite by the clock"
    found = time_all({name: functools.partial(time_static, name) for name in request.cases})
    yield failures(what, found)
    shares = {
        name: plan["bytes_compulsory"] / DRAM_BYTES_PER_US / plan["us"]
        for name, plan in good(found).items()
        if name not in WITHOUT_LIMIT
    }
    share = f"{what}, compulsory bytes / DRAM rate / time"
    mean = measure.geometric_mean(list(shares.values()))
    yield Row(f"{share}, geometric mean", round(mean, 3), 0.92, at_least=True, detail=found)
    for names, limit in ((set(shares) - {*HARD}, 0.75), (set(shares) & {*HARD}, 0.6)):
        if names:
            worst = min(names, key=shares.get)
            yield Row(f"{share}, worst ({worst})", round(shares[worst], 3), limit, at_least=True)
    counted = time_all(
        {
            name: lambda name=name: time_plan(*budgeted(name))
            for name in BUDGETS
            if name in request.cases
        }
    )
    for name, plan in good(counted).items():
        each = plan["instructions"] / (plan["bytes_compulsory"] / 16)
        yield Row(f"{name}, thread instructions for 16 bytes", round(each, 1), BUDGETS[name])
    yield from prediction_rows(what, found)


def prediction_rows(what, found):
    """The cost model beside the clock."""
    off = {
        f"{name}.{kernel['name']}": max(ratio, 1 / ratio)
        for name, plan in good(found).items()
        if name not in WITHOUT_LIMIT
        for kernel in plan["kernels"]
        for ratio in [kernel["predicted_us"] / kernel["clock_us"]]
    }
    if off:
        worst = max(off, key=off.get)
        median = round(statistics.median(off.values()), 3)
        yield Row(f"{what}, predictions off by, median", median, 1.2)
        yield Row(f"{what}, predictions off by, worst ({worst})", round(off[worst], 2), 2.0)


def time_cubins(folder):
    """case -> microseconds of Inductor's kernels, by the clock."""
    times = {}
    for case, *_, entry in gpu_cubins.list_launches(folder):
        times.setdefault(case, []).append(ask_about_cubin(folder, case, entry).get("clock_us"))
    return times


def clock_yardstick(request):
    """Inductor's kernels' time over ours; products and attention are left out of both."""
    what = "yardstick by the clock"
    if not request.yardstick:
        yield Row(what, "skipped: no --yardstick folder")
        return
    folder = Path(request.yardstick) / "triton_h200"
    inductor = time_cubins(folder)

    def timed(case):
        is_training = case.mode == "training"
        return lambda: time_plan(*case.make(), is_training)

    cases = gpu_cubins.load_yardstick(folder)
    found = time_all({name: timed(case) for name, case in cases.items() if name in inductor})
    yield failures(what, found)
    ratios, launched = {}, {}
    for name, plan in good(found).items():
        if None in inductor[name]:
            continue
        theirs, count = sum(inductor[name]), len(inductor[name])
        ratios[name] = theirs / plan["us"]
        ours = plan["us"] + LAUNCH_US * plan["launches"]
        launched[name] = (theirs + LAUNCH_US * count) / ours
        plan["inductor_us"] = theirs
    mean = round(measure.geometric_mean(list(ratios.values())), 3)
    worst = min(ratios, key=ratios.get)
    name = f"{what}, Inductor's kernels' time / ours"
    yield Row(f"{name}, geometric mean of {len(ratios)}", mean, 1.25, at_least=True, detail=found)
    yield Row(f"{name}, worst ({worst})", round(ratios[worst], 3), 0.9, at_least=True)
    mean = round(measure.geometric_mean(list(launched.values())), 3)
    yield Row(f"{name}, with {LAUNCH_US} us a launch", mean, 1.35, at_least=True)
    yield from prediction_rows(what, found)


GROUPS = {"clock_suite": clock_suite, "clock_yardstick": clock_yardstick}
