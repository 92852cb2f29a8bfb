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
    state = {"first": args.first, "next": args.first, "failed": {}, "excused": {}, "seconds": 0}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text())
    end = state["first"] + args.seeds
    again = sorted({int(seed) // batch * batch for seed in state["failed"]})
    for at in (*again, *range(state["next"] // batch * batch, end, batch)):
        seeds = range(max(at, state["first"]), min(end, at + batch))
        start = time.perf_counter()
        found = check_counted(check, seeds)
        state["seconds"] += time.perf_counter() - start
        state["next"] = max(state["next"], seeds.stop)
        for kind, is_torch in (("failed", False), ("excused", True)):
            kept = {s: d for s, d in state[kind].items() if int(s) not in seeds}
            now = {str(s): d for s, d in found.items() if d.startswith("torch: ") == is_torch}
            state[kind] = kept | now
        for seed in state["failed"].keys() & set(map(str, seeds)):
            print(f"seed {seed}: {found[int(seed)]}\n  {describe(int(seed))}", flush=True)
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps(state))
    if args.record:
        record(what, state)
    excused, failed = len(state["excused"]), len(state["failed"])
    apart = f", {excused} that torch itself fails" if excused else ""
    passed = state["next"] - state["first"] - failed - excused
    print(f"{passed} passed, {failed} failed{apart}")
    return 1 if failed else 0


def check_counted(check, seeds):
    """A fallback is a difference too."""
    torch_stitch.reset_counters()
    found = check(seeds)
    fallbacks = torch_stitch.counters()["fallback_ops"]
    return found or ({seeds[0]: f"{fallbacks} ops fell back"} if fallbacks else {})


def record(what, state):
    rows = [
        Row(f"{what}: checked", state["next"] - state["first"], 1, at_least=True),
        Row(f"{what}: wrong", len(state["failed"]), 0, detail=state["failed"]),
    ]
    name = what.replace(" ", "_")
    write_group(name, rows, state["seconds"], results_directory(machine.describe()))
