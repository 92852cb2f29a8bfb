"""Every sample of every op that torch lists, forward and backward, against eager (R10).

    python tests/fuzz/opinfo_sweep.py [--dtypes float32 bfloat16] [--ops add sum] [--device cuda]

All samples of an op and a dtype are one graph; where that differs or fails, each is a graph of its
own, and one that torch's tracing alone (aot_eager) gets wrong in the same way is counted apart.
Work is done by a child process, so that a crash is a finding; the state file makes a run resumable.
"""

import argparse
import collections
import json
import os
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
from tests.fuzz.check_seeds import share_of  # noqa: E402
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
from tests.support.poisoned import ENDED, EXIT_CODE, PoisonedError, check_device  # noqa: E402
from tests.support.torch_ops import STITCHED, op_db  # noqa: E402

DTYPES = "float32 bfloat16 int64 float16 bool complex64 float64 int32 uint8 int8 int16".split()
SECONDS = 400  # for an op and a dtype; more is a finding
MOST_TOGETHER = 40
VARIANTS = {op.formatted_name: op.name for op in op_db}
# By op and dtype, where eager's error shows beside fp64: it multiplies by 1 / 6 as fp32 has it, in
# the gradient of the first, and on GPUs in the second.
LESS_EXACT = {(f"nn_functional_hard{name}", torch.float64) for name in ("sigmoid", "swish")}


class Fault(NamedTuple):
    text: str
    may_be_luck: bool = False  # R10 is missed, and nothing but that


def faults_of(op, samples, backend):
    """What is wrong with each sample that differs; one Fault where none of them ran."""
    try:
        results, faults = outcomes(op, samples, backend), []
    except PoisonedError as error:
        raise PoisonedError(f"{error}; {describe(samples)}") from error
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


def sweep(op, dtype, device, together=MOST_TOGETHER, go_on=lambda: None):
    """What is kept of one op and dtype; calls `go_on` before each graph."""
    row = {"samples": 0, "faults": [], "excused": [], "calls": 0, "seconds": 0}
    start = time.perf_counter()
    try:
        samples = sample_list(op, dtype, device=device)
        run(applied(op), fresh(samples))
    except Exception as error:
        check_device(device, "eager")
        return row | {"skipped": f"{type(error).__name__}: {str(error)[:100]}"}
    row["samples"] = len(samples)
    torch_stitch.reset_counters()
    for at in range(0, len(samples), together):
        part = samples[at : at + together]
        go_on()
        if not faults_of(op, part, "stitch"):
            continue
        for position, sample in enumerate(part, at):
            go_on()
            fault = next(iter(faults_of(op, [sample], "stitch")), None)
            if not fault or (fault.may_be_luck and is_luck(op, dtype, position, device)):
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
    """What kernels are made for comes first; a share has each N-th."""
    ops = sorted(op_db, key=lambda op: op.formatted_name)
    ops = [op for op in ops if not args.ops or op.name in args.ops]
    ops = [op for op in ops if "empty" not in op.name]  # whose elements are what they are
    found = [
        (f"{op.formatted_name} {name}", op, getattr(torch, name))
        for is_stitched in (True, False)
        for name in args.dtypes
        for op in ops
        if (op.name in STITCHED) == is_stitched
        if getattr(torch, name) in op.supported_dtypes(args.device)
    ]
    return found[args.share or slice(None)]


def stop(*_):
    raise TimeoutError(f"not over after {SECONDS} s")


def work(args):
    """The child: one row after the other; what it is at stands in the state first."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, stop)
    state = load(args.state)
    for row in state.values():
        row.pop("begun", None)
    for name, op, dtype in tasks(args):
        if name in state and not state[name].get("alone"):
            continue
        earlier = state.get(name)
        nothing = {"samples": 0, "excused": [], "calls": 0}
        faults = (earlier or {"faults": []})["faults"]
        state[name] = nothing | {"faults": [*faults, ENDED], "begun": True}
        args.state.write_text(json.dumps(state))
        signal.alarm(SECONDS)
        try:
            together = 1 if earlier else MOST_TOGETHER
            state[name] = sweep(op, dtype, args.device, together, args.state.touch)
            state[name]["faults"] += faults
        except PoisonedError as error:  # the next process takes the samples one by one
            found = nothing | {"faults": [*faults, str(error)], "alone": not earlier}
            args.state.write_text(json.dumps(state | {name: found}))
            print(f"{name}: {error}", flush=True)
            os._exit(EXIT_CODE)
        except Exception as error:
            state[name]["faults"] = [*faults, f"{type(error).__name__}: {str(error)[:300]}"]
            del state[name]["begun"]
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
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share", type=share_of, help="I/N: each N-th task; for in_parallel.py")
    parser.add_argument("--again", action="store_true", help="what failed is tried again")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.state.parent.mkdir(parents=True, exist_ok=True)
    if args.child or args.share:
        return work(args)
    if args.again:
        tried = {name for name, _, _ in tasks(args)}  # what else has failed stays so
        rows = load(args.state).items()
        kept = {name: row for name, row in rows if name not in tried or not row["faults"]}
        args.state.write_text(json.dumps(kept))
    flags = [x for x in sys.argv[1:] if x not in ("--again", "--record")]
    command = [sys.executable, __file__, *flags, "--child"]
    while (code := subprocess.run(command).returncode) < 0 or code == EXIT_CODE:
        print("a child process ended early; the next one goes on", flush=True)
    state = load(args.state)
    if args.record:
        record(state)
    failed = sum(len(row["faults"]) for row in state.values())
    print(f"{len(state)} ops and dtypes, {failed} samples failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
