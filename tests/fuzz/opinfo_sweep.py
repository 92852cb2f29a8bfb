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

import torch
from torch.utils._pytree import tree_leaves, tree_map

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch_stitch  # noqa: E402
from benchmarks import machine  # noqa: E402
from benchmarks.rows import Row  # noqa: E402
from benchmarks.run import results_directory, write_group  # noqa: E402
from tests.support.compare import find_fault  # noqa: E402
from tests.support.torch_ops import STITCHED, op_db  # noqa: E402

DTYPES = "float32 bfloat16 int64 bool float16 float64 int32 uint8 int8 int16 complex64".split()
DRAWS = 16  # of a sample that misses R10: of few elements an rmse is the luck of single roundings
CLOSE = {torch.float64: (1e-9, 1e-11), torch.complex64: (1e-4, 1e-5)}
SECONDS = 400  # for an op and a dtype; more is a finding
MOST_TOGETHER = 40
VARIANTS = {op.formatted_name: op.name for op in op_db}


def sample_list(op, dtype, seed=0):
    """(input, args, kwargs) of each; tensors of floats ask for gradients where the op has them."""
    torch.manual_seed(seed)
    wants = dtype.is_floating_point and op.supports_autograd
    samples = op.sample_inputs("cpu", dtype, requires_grad=wants, set_seed=False)
    return [(s.input, tuple(s.args), dict(s.kwargs)) for s in samples]


def fresh(samples):
    """The same samples on memory of their own."""

    def copied(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().clone().requires_grad_(x.requires_grad)

    return tree_map(copied, samples)


def widened(samples):
    def wide(x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return torch.float64 if x in (torch.float16, torch.bfloat16, torch.float32) else x
        return x.detach().double().requires_grad_(x.requires_grad)

    return tree_map(wide, samples)


def tensors_in(tree):
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def weights_of(y):
    return (torch.arange(y.numel()) % 7 + 1.0).reshape(y.shape).to(y.dtype)


def run(function, samples):
    """By sample: results, and the gradients of what asks for them."""
    torch.manual_seed(0)
    rows, found = function(samples), []
    for sample, results in zip(samples, rows, strict=True):
        leaves = [x for x in tensors_in(sample) if x.requires_grad]
        made = [y for y in tensors_in(results) if y.requires_grad and y.is_floating_point()]
        row = [y.detach() if isinstance(y, torch.Tensor) else y for y in tree_leaves(results)]
        if leaves and made:
            total = sum((y * weights_of(y)).double().sum() for y in made)
            grads = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
            row += [torch.zeros(()) if g is None else g for g in grads]
        found.append(row)
    return found


def applied(op):
    def fn(samples):
        return [op.op(x, *args, **kwargs) for x, args, kwargs in samples]

    return fn


def outcomes(op, samples, backend):
    """By sample, (found, eager's, eager's once more, exact) of each result; words where it fails.

    The samples are one graph.
    """
    fn = applied(op)
    eager, again = (run(fn, fresh(samples)) for _ in range(2))
    try:
        torch.set_default_dtype(torch.float64)
        exact = run(fn, widened(samples))
    except Exception:
        exact = eager
    finally:
        torch.set_default_dtype(torch.float32)
    options = {"options": {"strict": True}} if backend == "stitch" else {}
    torch._dynamo.reset()
    try:
        found = run(torch.compile(fn, backend=backend, **options), fresh(samples))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    for mine, theirs in zip(found, eager, strict=True):
        if len(mine) != len(theirs):
            return f"{len(mine)} results, eager {len(theirs)}"
    wide = [e if len(e) == len(row) else row for e, row in zip(exact, eager, strict=True)]
    return [list(zip(*rows, strict=True)) for rows in zip(found, eager, again, wide, strict=True)]


def faults_of(op, samples, backend):
    """What is wrong, in words, a text for each sample that differs; one where none of them ran."""
    results, faults = outcomes(op, samples, backend), []
    if isinstance(results, str):
        return [results]
    for sample, rows in zip(samples, results, strict=True):
        largest = max((x.numel() for x in tensors_in(sample)), default=1)
        found = (compare(*row, largest) for row in rows)
        fault = next(((at, fault) for at, fault in enumerate(found) if fault), None)
        faults += [f"{describe(sample)}: result {fault[0]}: {str(fault[1])[:300]}"] if fault else []
    return faults


def is_luck(op, dtype, position):
    """Whether a sample of few elements keeps to R10 over more of its kind, all errors pooled."""
    drawn = [sample_list(op, dtype, seed)[position] for seed in range(DRAWS)]
    results = outcomes(op, drawn, "stitch")
    if isinstance(results, str) or len({len(rows) for rows in results}) > 1:
        return False
    largest = max((x.numel() for x in tensors_in(drawn[0])), default=1)
    if any(isinstance(compare(*row, largest), (str, tuple)) for rows in results for row in rows):
        return False
    for alike in zip(*results, strict=True):
        if not all(isinstance(x, torch.Tensor) for row in alike for x in row):
            continue
        pooled = (torch.cat([x.flatten() for x in parts]) for parts in zip(*alike, strict=True))
        if compare(*pooled, largest * len(drawn)):
            return False
    return True


def compare(mine, theirs, again, wide, largest):
    """Nothing, or what is wrong; of what eager does not repeat only the form counts."""
    if not isinstance(theirs, torch.Tensor):
        return None if mine == theirs or mine != mine else (mine, theirs)
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return f"{mine.dtype} {tuple(mine.shape)}, eager {theirs.dtype} {tuple(theirs.shape)}"
    if theirs.layout != torch.strided or theirs.is_quantized:
        return None
    if theirs.dtype == torch.complex32:  # has next to no ops
        mine, theirs, again = (x.to(torch.complex64) for x in (mine, theirs, again))
    if not torch.equal(theirs.nan_to_num(), again.nan_to_num()):
        return None
    if not theirs.dtype.is_floating_point or theirs.dtype == torch.float64:
        near = CLOSE.get(theirs.dtype)  # nothing is exact beside these
        same = torch.allclose(mine, theirs, *near, True) if near else torch.equal(mine, theirs)
        return None if same else (mine.tolist(), theirs.tolist())
    wide = wide if wide.shape == theirs.shape and wide.is_floating_point() else theirs
    row = [x.clone(memory_format=torch.contiguous_format) for x in (mine, theirs, wide.double())]
    return find_fault(*row, largest // max(theirs.numel(), 1))


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
            if not fault or ("rmse_ratio" in fault and is_luck(op, dtype, position)):
                continue
            theirs = next(iter(faults_of(op, [sample], "aot_eager")), "")
            row["excused" if kind_of(theirs) == kind_of(fault) else "faults"].append(fault)
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
        Row("torch's OpInfo: samples that torch's tracing gets wrong", count["excused"]),
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
        kept = {name: row for name, row in load(args.state).items() if not row["faults"]}
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
