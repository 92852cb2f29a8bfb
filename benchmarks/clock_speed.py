"""How long the clock takes for a kernel (docs/clock.md), of the micro suite and the yardstick."""

import functools
import statistics
from pathlib import Path

import torch

from benchmarks import gpu_cubins
from benchmarks.cases import CASES
from benchmarks.child import temporary_directory
from benchmarks.rows import PLANNED_FOR, Row, skip_without_nvrtc
from tools.show import capture_graphs
from torch_stitch.measure.backends import own_copy

MOST_MS = {"median": 30, "slowest": 500}  # of one core


def time_clock(make, is_training=False):
    """Milliseconds for a kernel of each graph; no answer of an earlier run is there."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    fn, inputs = make()
    times = []
    for graph in capture_graphs(own_copy(fn), inputs, PLANNED_FOR, is_training):
        with temporary_directory() as cache:
            report = graph.compile(clock=True, cache=cache)
        (spent,) = [s["milliseconds"] for s in report["stages"] if s["name"] == "clock"]
        times += [spent / max(1, len(report["kernels"]))] * len(report["kernels"])
    return times


def clock_speed(request):
    """Of graphs with several kernels the mean counts for each."""
    what = "the clock on one core, milliseconds for a kernel"
    if reason := skip_without_nvrtc(what):
        yield reason
        return
    makers = {name: functools.partial(time_clock, CASES[name].timed) for name in request.cases}
    if request.yardstick:
        folder = Path(request.yardstick) / "triton_h200"
        for name, case in gpu_cubins.load_yardstick(folder).items():
            makers[name] = functools.partial(time_clock, case.make, case.mode == "training")
    times = {name: make() for name, make in makers.items()}
    every = [ms for found in times.values() for ms in found]
    slowest = max(times, key=lambda name: max(times[name], default=0))
    median = round(statistics.median(every), 1)
    yield Row(f"{what}, median of {len(every)}", median, MOST_MS["median"], detail=times)
    yield Row(f"{what}, slowest ({slowest})", round(max(every), 1), MOST_MS["slowest"])


GROUPS = {"clock_speed": clock_speed}
