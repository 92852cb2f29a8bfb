"""Every sample of every op that torch lists, forward and backward, against eager (R10).

    python tests/fuzz/opinfo_sweep.py [--dtypes float32 bfloat16] [--ops add sum] [--record]

All samples of an op and a dtype are one graph; where that differs or fails, each is a graph of its
own, and one that torch's tracing alone (aot_eager) gets wrong in the same way is counted apart.
Work is done by a child process, so that a crash is a finding; the state file makes a run resumable.
"""

import argparse
import collections
import json
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import torch
from torch.utils._pytree import tree_map

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch_stitch  # noqa: E402
from benchmarks import machine  # noqa: E402
from benchmarks.rows import Row  # noqa: E402
from benchmarks.run import results_directory, write_group  # noqa: E402
from tests.support.op_samples import (  # noqa: E402
    applied,
    compare,
    fresh,
    is_luck,
    outcomes,
    run,
    sample_list,
    tensors_in,
)
from tests.support.torch_ops import STITCHED, op_db  # noqa: E402

DTYPES = "float32 bfloat16 int64 bool float16 float64 int32 uint8 int8 int16 complex64".split()
SECONDS = 400  # for an op and a dtype; more is a finding
MOST_TOGETHER = 40
VARIANTS = {op.formatted_name: op.name for op in op_db}
# By op and dtype, where eager's error shows beside fp64: its gradient multiplies by fp32's 1 / 6.
LESS_EXACT = {("nn_functional_hardsigmoid", torch.float64)}


class Fault(NamedTuple):
    text: str
    may_be_luck: bool = False  # R10 is missed, and nothing but that


def faults_of(op, samples, backend):
    """What is wrong with each sample that differs; one Fault where none of them ran."""
    results, faults = outcomes(op, samples, backend), []
    if isinstance(results, str):
        return [Fault(results)]
    for sample, rows in zip(samples, results, strict=True):
        largest = max((x.numel() for x in tensors_in(sample)), default=1)
        for at, row in enumerate(rows):
            if verdict := compare(*row, largest):
                text = f"{describe(sample)}: result {at}: {str(verdict)[:300]}"
                faults.append(Fault(text, isinstance(verdict, dict)))
                break
    return faults


def describe(sample):
    return str(tree_map(lambda x: f"{x.dtype} {list(x.shape)}".removeprefix("torch.")
                        if isinstance(x, torch.Tensor) else x, sample))[:200]  # fmt: skip


def sweep(op, dtype):
    """What is kept of one op and dtype."""
    row = {"samples": 0, "faults": [], "excused": [], "calls": 0, "seconds": 0}
    start = time.perf_counter()
    try:
        samples = sample_list(op, dtype)
        run(applied(op), fresh(samples))
    except Exception as error:
        return row | {"skipped": f"{type(error).__name__}: {str(error)[:100]}"}
    row["samples"] = len(samples)
    torch_stitch.reset_counters()
    for at in range(0, len(samples), MOST_TOGETHER):
        part = samples[at : at + MOST_TOGETHER]
        if not faults_of(op, part, "stitch"):
            continue
        for position, sample in enumerate(part, at):
            fault = next(iter(faults_of(op, [sample], "stitch")), None)
            if not fault or (fault.may_be_luck and is_luck(op, dtype, position)):
                continue
            theirs = next(iter(faults_of(op, [sample], "aot_eager")), Fault(""))
            is_theirs = kind_of(theirs.text) == kind_of(fault.text)
            is_theirs |= (op.formatted_name, dtype) in LESS_EXACT
            row["excused" if is_theirs else "faults"].append(fault.text)
    row["calls"] = torch_stitch.counters()["library_calls"]
    return row | {"seconds": round(time.perf_counter() - start, 1)}


def kind_of(fault):
    return re.sub(r"[\d.e-]+|aot_eager|stitch|strict", "", fault)[:60]


def tasks(args):
    wanted = [d for d in DTYPES if d in args.dtypes]
    ops = sorted(op_db, key=lambda op: op.formatted_name)
    for name in wanted:
        for op in ops:
            chosen = not args.ops or op.name in args.ops
            chosen = chosen and "empty" not in op.name  # whose elements are what they are
            if chosen and getattr(torch, name) in op.supported_dtypes("cpu"):
                yield f"{op.formatted_name} {name}", op, getattr(torch, name)


def stop(*_):
    raise TimeoutError(f"not over after {SECONDS} s")


def work(args):
    """The child: one row after the other; what it is at stands in the state first."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, stop)
    state = load(args.state)
    for name, op, dtype in tasks(args):
        if name in state:
            continue
        state[name] = {"samples": 0, "faults": ["the process ended"], "excused": [], "calls": 0}
        args.state.write_text(json.dumps(state))
        signal.alarm(SECONDS)
        try:
            state[name] = sweep(op, dtype)
        except Exception as error:
            state[name]["faults"] = [f"{type(error).__name__}: {str(error)[:300]}"]
        signal.alarm(0)
        args.state.write_text(json.dumps(state))
        for fault in state[name]["faults"]:
            print(f"{name}: {fault}", flush=True)


def load(path):
    return json.loads(path.read_text()) if path.exists() else {}


def record(state):
    faults = {name: row["faults"] for name, row in state.items() if row["faults"]}
    count = collections.Counter()
    for name, row in state.items():
        count += {"samples": row["samples"], "excused": len(row["excused"])}
        if VARIANTS.get(name.split()[0]) in STITCHED and "complex" not in name:
            whole = max(0, row["samples"] - row["calls"])
            count += {"of families": row["samples"], "without a call": whole}
    share = count["without a call"] / max(1, count["of families"])
    rows = [
        Row("torch's OpInfo: ops and dtypes", len(state), 1, at_least=True),
        Row("torch's OpInfo: samples", count["samples"], 1, at_least=True),
        Row("torch's OpInfo: samples that torch gets wrong", count["excused"]),
        Row("torch's OpInfo: mismatches", sum(map(len, faults.values())), 0, detail=faults),
        Row("torch's OpInfo: stitched families, share without a call", share, 0.95, at_least=True),
    ]
    seconds = sum(row.get("seconds", 0) for row in state.values())
    write_group("opinfo", rows, seconds, results_directory(machine.describe()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--ops", nargs="+", default=[])
    parser.add_argument("--state", type=Path, default=Path("build/opinfo.json"))
    parser.add_argument("--record", action="store_true", help="write benchmarks/results")
    parser.add_argument("--again", action="store_true", help="what failed is tried again")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.state.parent.mkdir(parents=True, exist_ok=True)
    if args.child:
        return work(args)
    if args.again:
        tried = {name for name, _, _ in tasks(args)}  # what else has failed stays so
        rows = load(args.state).items()
        kept = {name: row for name, row in rows if name not in tried or not row["faults"]}
        args.state.write_text(json.dumps(kept))
    flags = [x for x in sys.argv[1:] if x not in ("--again", "--record")]
    while subprocess.run([sys.executable, __file__, *flags, "--child"]).returncode < 0:
        print("a child process ended by a signal; the next one goes on", flush=True)
    state = load(args.state)
    if args.record:
        record(state)
    failed = sum(len(row["faults"]) for row in state.values())
    print(f"{len(state)} ops and dtypes, {failed} samples failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
