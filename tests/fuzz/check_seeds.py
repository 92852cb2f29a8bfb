"""The command line of a random test: seeds are checked in batches, and what crashes is a finding.

A state file makes a run resumable, which first checks again what failed; a complete one is summed
up under benchmarks/results.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch_stitch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import machine  # noqa: E402
from benchmarks.rows import Row  # noqa: E402
from benchmarks.run import results_directory, write_group  # noqa: E402


def parse_arguments(about, *flags):
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--state", type=Path, help="goes on where the run of this file stopped")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def check_seeds(check, describe, args, what, batch=1):
    """check(seeds) gives what differs by seed; "torch: ..." is a fault of torch itself."""
    state = {"first": args.first, "next": args.first, "failed": {}, "excused": {}, "fallbacks": 0}
    state["seconds"] = 0
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text())
        again, state["failed"] = state["failed"], {}
        for seed in map(int, again):
            state["failed"] |= check(range(seed, seed + 1))
    end = state["first"] + args.seeds
    while state["next"] < end:
        start = time.perf_counter()
        at = state["next"]
        seeds = range(at, min(end, (at // batch + 1) * batch))
        torch_stitch.reset_counters()
        for seed, difference in check(seeds).items():
            kind = "excused" if difference.startswith("torch: ") else "failed"
            state[kind][str(seed)] = difference
            if kind == "failed":
                print(f"seed {seed}: {difference}\n  {describe(seed)}", flush=True)
        state["fallbacks"] += torch_stitch.counters()["fallback_ops"]
        state["next"] = seeds[-1] + 1
        state["seconds"] += time.perf_counter() - start
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps(state))
    if args.record:
        record(what, state)
    excused, failed = len(state["excused"]), len(state["failed"])
    apart = f", {excused} that torch's tracing fails" if excused else ""
    passed = end - state["first"] - failed - excused
    print(f"{passed} passed, {failed} failed{apart}, {state['fallbacks']} fallback ops")
    return 1 if failed or state["fallbacks"] else 0


def record(what, state):
    rows = [
        Row(f"{what}: checked", state["next"] - state["first"], 1, at_least=True),
        Row(f"{what}: wrong", len(state["failed"]), 0, detail=state["failed"]),
        Row(f"{what}: fallback ops", state["fallbacks"], 0),
    ]
    name = what.replace(" ", "_")
    write_group(name, rows, state["seconds"], results_directory(machine.describe()))
