"""Fits a line of csrc/plan/patterns/plan_patterns.cpp.

`python -m benchmarks.calibrate [--output FILE]`

`saved`: what bytes cost that no longer pass through memory, a line in the bytes (FusionStitching
2020, 20.21).  Measured: two kernels that hand a tensor on, and one kernel that does both.  What is
left of the difference, less the launch that the row counts by itself, is the memory's.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch

from benchmarks import machine
from benchmarks.gpu_times import capture, time_events

LAUNCH_US = 1.5  # as the rows of csrc/cost/device_spec.cpp say
SIZES = [1 << bits for bits in range(14, 29)]  # elements of float32
REPEATS = 20  # of a kernel in one graph
ROUNDS = 15


def fit_line(points):
    """(start, slope) of the line through (x, y), y > 0, with the least squares of relative errors.

    Relative, for a few large sizes would otherwise outvote all small ones.
    """
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    covariance = sum(
        w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True)
    )
    variance = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    if variance == 0:
        raise ValueError("a line needs points of two sizes at least")
    slope = covariance / variance
    return y_mean - slope * x_mean, slope


def fit_saved(points, launch_us=LAUNCH_US):
    """`saved` from (bytes, microseconds saved with a launch)."""
    start, slope = fit_line(points)
    errors = [abs(start + slope * x - y) / y for x, y in points]
    return {
        "start_us": start - launch_us,
        "bytes_per_us": 1 / slope,
        "worst_relative_error": max(errors),
    }


def measure_saved(elements):
    """(bytes of a tensor stored and loaded again, microseconds that two kernels take more)."""
    x, y, z = (torch.rand(elements, device="cuda") for _ in range(3))

    def apart():
        torch.neg(x, out=y)
        torch.neg(y, out=z)

    graphs = {"apart": capture(apart, REPEATS)}
    graphs["together"] = capture(lambda: torch.neg(x, out=z), REPEATS)
    times = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            times[name].append(time_events(graph.replay, 1) / REPEATS)
    apart_us, together_us = (statistics.median(times[name]) for name in graphs)
    return 2 * x.nbytes, apart_us - together_us


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU to measure")
    points = [point for point in map(measure_saved, SIZES) if point[1] > 0]
    result = {**machine.describe(), "saved": fit_saved(points), "points": points}
    text = json.dumps(result, indent=1)
    print(text)
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
