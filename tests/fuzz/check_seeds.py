"""The command line of a random test: seeds are checked in batches, and what crashes is a finding.

A state file makes a run resumable, which first checks again what failed; a complete one is summed
up under benchmarks/results.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch_stitch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import machine  # noqa: E402
from benchmarks.rows import Row  # noqa: E402
from benchmarks.run import results_directory, write_group  # noqa: E402
from tests.support.poisoned import ENDED, EXIT_CODE, PoisonedError  # noqa: E402


def parse_arguments(about, *flags):
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--state", type=Path, help="goes on where the run of this file stopped")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share", type=share_of, help="I/N: each N-th batch; for in_parallel.py")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def share_of(text):
    index, count = map(int, text.split("/"))
    return slice(index, None, count)


def check_seeds(check, describe, args, what, batch=1):
    """check(seeds) gives what differs by seed; "torch: ..." is a fault of torch itself."""
    state = {"first": args.first, "next": args.first, "failed": {}, "excused": {}, "seconds": 0}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text())
    end = state["first"] + args.seeds
    state.setdefault("checked", state["next"] - state["first"])
    again = note_end(state) if args.share else []
    for at, count in (*again, *batches(state, args.share, end, batch)):
        seeds = range(max(at, state["first"]), min(end, at + count))
        state |= {"at": [seeds.start, seeds.stop], "alone": [x for x in again if x[0] > at]}
        write(args.state, state)
        start = time.perf_counter()
        try:
            found = check_counted(check, seeds)
        except PoisonedError as error:
            note(state, seeds, {seeds[0]: f"seeds {seeds[0]} to {seeds[-1]}: {error}"}, describe)
            write(args.state, state)
            os._exit(EXIT_CODE)
        state["seconds"] += time.perf_counter() - start
        state["checked"] += max(0, seeds.stop - max(state["next"], seeds.start))
        state["next"] = max(state["next"], seeds.stop)
        del state["at"]
        note(state, seeds, found, describe)
        write(args.state, state)
    if args.record:
        record(what, state)
    excused, failed = len(state["excused"]), len(state["failed"])
    apart = f", {excused} that torch itself fails" if excused else ""
    passed = state["checked"] - failed - excused
    print(f"{passed} passed, {failed} failed{apart}")
    return 1 if failed else 0


def batches(state, share, end, batch):
    """What is to be checked: what failed, but for a share of a run, and what is left."""
    starts = range(state["first"] // batch * batch, end, batch)[share or slice(None)]
    again = () if share else sorted({int(seed) // batch * batch for seed in state["failed"]})
    return [(at, batch) for at in (*again, *(x for x in starts if x + batch > state["next"]))]


def note_end(state):
    """Seeds at which the process before this one ended, to be checked one by one."""
    again = state.pop("alone", [])
    if "at" in state:
        first, stop = state.pop("at")
        state["failed"].setdefault(str(first), f"seeds {first} to {stop - 1}: {ENDED}")
        if stop > state["next"]:
            state |= {"next": stop, "checked": state["checked"] + stop - first}
        if stop - first > 1:
            again = [*([seed, 1] for seed in range(first, stop)), *again]
    return again


def note(state, seeds, found, describe):
    """Keeps and prints what was found of these; what is said of more than them stays."""
    for kind, is_torch in (("failed", False), ("excused", True)):
        kept = {
            s: d for s, d in state[kind].items()
            if int(s) not in seeds or (len(seeds) == 1 and not found and d.startswith("seeds "))
        }  # fmt: skip
        now = {str(s): d for s, d in found.items() if d.startswith("torch: ") == is_torch}
        state[kind] = kept | now
    for seed in state["failed"].keys() & set(map(str, found)):
        print(f"seed {seed}: {found[int(seed)]}\n  {describe(int(seed))}", flush=True)


def write(path, state):
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state))


def check_counted(check, seeds):
    """A fallback is a difference too."""
    torch_stitch.reset_counters()
    found = check(seeds)
    fallbacks = torch_stitch.counters()["fallback_ops"]
    return found or ({seeds[0]: f"{fallbacks} ops fell back"} if fallbacks else {})


def record(what, state):
    rows = [
        Row(f"{what}: checked", state["checked"], 1, at_least=True),
        Row(f"{what}: wrong", len(state["failed"]), 0, detail=state["failed"]),
    ]
    name = what.replace(" ", "_")
    write_group(name, rows, state["seconds"], results_directory(machine.describe()))
