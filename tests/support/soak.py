"""Long runs, recorded under benchmarks/results: many shapes through one graph, training on two
ranks, the same bits again and again, children of processes that run graphs.

`python -m tests.support.soak [--state FILE]` goes on where the run of that file stopped.  The
limits are floors R12 and R26 to R28 of the project's goals for reliability.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks import machine
from benchmarks.rows import Row
from benchmarks.run import print_row, results_directory, write_group
from tests.support import children, ranks
from tests.support.equal_bits import BATCH

SHAPES = 20_000
MOST_GROWTH_MIB = 64
WARM_UP = 0.1  # of the calls
STEPS = 200  # of training
KERNELS, RUNS, ORDERS = 200, 100, 64
# By kind; what leaves a process to start, or to compile, takes seconds each.
CHILDREN = dict(zip(children.KINDS, (100, 10, 8, 20, 10), strict=True))
AT_ONCE = 3  # batches of one process


def norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:]).sum(0) + x.amax(0)


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def resources():
    gc.collect()
    files, threads = (len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task"))
    return resident_mib(), files, threads


def call_with_shapes(count):
    """What remains after `count` distinct shapes, beside what the first tenth has left."""
    torch._dynamo.reset()
    compiled = torch.compile(norm, backend="stitch", dynamic=True)
    drawn = random.Random(0).sample(range(4, 4 + 100 * count), count)
    before, wrong = None, 0
    for i, number in enumerate(drawn):
        x = torch.randn(2 + number % 100, 2 + number // 100 % 400)
        wrong += not torch.allclose(compiled(x), norm(x), rtol=1e-4, atol=1e-4)
        if i == int(count * WARM_UP):
            before = resources()
    left = [b - a for a, b in zip(before, resources())]
    return {
        "shapes": count,
        "wrong": wrong,
        "growth_mib": round(left[0], 1),
        "files": left[1],
        "threads": left[2],
    }


def programs():
    """Sums in each direction, products, scatters, random numbers."""
    x, index = torch.randn(317, 129), torch.randint(0, 11, (317,))
    return [
        (lambda x: (x.sum(), x.sum(0), x.softmax(-1), x.std(1)), (x,)),
        (lambda x: torch.nn.functional.gelu(x @ x.t()).mean(-1), (x,)),
        (lambda x, i: torch.zeros(11, 129).index_add(0, i, x), (x, index)),
        (lambda x: torch.nn.functional.dropout(x, 0.3).sum(1), (x,)),
    ]


def count_unequal_runs(runs):
    """Of repeated calls, those whose bits differ from the first one's."""
    unequal = 0
    for fn, inputs in programs():
        torch._dynamo.reset()
        compiled, first = torch.compile(fn, backend="stitch"), None
        for _ in range(runs):
            torch.manual_seed(0)
            got = torch.utils._pytree.tree_leaves(compiled(*inputs))
            first = first or got
            unequal += not all(a.equal(b) for a, b in zip(first, got))
    return unequal


def run_module(name, *arguments, **environment):
    """What `python -m tests.support.NAME` prints last, as JSON."""
    command = [sys.executable, "-W", "ignore", "-m", f"tests.support.{name}", *map(str, arguments)]
    how = {"cwd": machine.ROOT, "env": os.environ | environment}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **how)
    return json.loads(done.stdout.splitlines()[-1])


def call_again(firsts):
    """By one process that compiles, and one that finds the kernels in its directory."""
    with tempfile.TemporaryDirectory() as directory:
        cold, warm = (
            run_module("equal_bits", "calls", RUNS, *firsts, TORCH_STITCH_CACHE=directory)
            for _ in range(2)
        )
    return [
        a | {"differs_when_warm": a["bits"] != b["bits"], "found_on_disk": b["cache_hits_disk"] > 0}
        for a, b in zip(cold, warm, strict=True)
    ]


def run_in_orders(firsts):
    return run_module("equal_bits", "orders", ORDERS, *firsts)


def until_enough(see, found, save):
    """Batches of random programs, until they hold as many kernels as are wanted."""
    done = found.setdefault("rows", [])
    while sum(row["kernels"] for row in done) < KERNELS:
        firsts = range(BATCH * len(done), BATCH * (len(done) + AT_ONCE), BATCH)
        done += see(firsts)
        save()
    return found


def count_children(kinds, save):
    for kind, count in CHILDREN.items():
        if kind not in kinds:
            kinds[kind] = {"children": count, "failed": run_module("children", kind, count)}
            save()
    return kinds


# Each takes what it has found so far, and a function that keeps it.
PARTS = {
    "shapes": lambda found, save: found | run_module("soak", "--shapes", SHAPES),
    "ranks": lambda found, save: found | ranks.train_ranks(STEPS),
    "children": count_children,
    "calls": lambda found, save: until_enough(call_again, found, save),
    "orders": lambda found, save: until_enough(run_in_orders, found, save),
}


def run_parts(state, save):
    for name, part in PARTS.items():
        kept = state.setdefault(name, {"found": {}, "seconds": 0, "is_over": False})
        start = time.perf_counter()

        def keep(kept=kept, before=kept["seconds"], start=start):
            kept["seconds"] = round(before + time.perf_counter() - start, 1)
            kept["commit"] = machine.commit()
            save()

        if not kept["is_over"]:
            kept["found"] = part(kept["found"], keep)
            kept["is_over"] = True
            keep()
            print(f"{name}: {kept['seconds']:.0f} s", flush=True)


def rows_of_shapes(found):
    what = "distinct shapes through one graph"
    yield Row(what, found["shapes"], SHAPES, at_least=True)
    yield Row(f"{what}: wrong", found["wrong"], 0)
    growth = found["growth_mib"]
    yield Row(f"{what}: growth after the first tenth", growth, MOST_GROWTH_MIB, unit="MiB")
    yield Row(f"{what}: files left open", found["files"], 0)
    yield Row(f"{what}: threads left", found["threads"], 0)


def rows_of_ranks(found):
    what = f"{ranks.RANKS} ranks on gloo"
    yield Row(f"{what}: steps", found["steps"], STEPS, at_least=True, detail=found)
    yield Row(f"{what}: kernels", found["kernels"], 1, at_least=True)
    yield Row(f"{what}: error against fp64 over eager's", found["rmse_over_eager"], 2)
    yield Row(f"{what}: worst error over eager's worst", found["worst_over_eager"], 4)
    yield Row(f"{what}: ranks that differ", found["ranks_that_differ"], 0)


def rows_of_children(found):
    what = "children of a process that runs graphs"
    counts = {kind: row["children"] for kind, row in found.items()}
    yield Row(what, sum(counts.values()), sum(CHILDREN.values()), at_least=True, detail=counts)
    stuck = {kind: row["failed"] for kind, row in found.items()}
    yield Row(f"{what}: failed or stuck", sum(stuck.values()), 0, detail=stuck)


def rows_of_calls(found):
    what, rows = f"kernels of random programs, called {RUNS} times", found["rows"]
    yield Row(what, sum(row["kernels"] for row in rows), KERNELS, at_least=True)
    yield Row(f"{what}: calls with other bits", sum(row["unequal"] for row in rows), 0)
    from_cache = sum(row["found_on_disk"] for row in rows)
    yield Row(
        f"{what}: graphs with other bits in a second process, from its cache",
        sum(row["differs_when_warm"] for row in rows), 0,
        detail={"graphs": len(rows), "from the cache": from_cache},
    )  # fmt: skip


def rows_of_orders(found):
    what, rows = f"kernels of random programs, on ptxsim in {ORDERS} orders", found["rows"]
    yield Row(what, sum(row["kernels"] for row in rows), KERNELS, at_least=True)
    accused = [text for row in rows for text in row["accused"]]
    yield Row(f"{what}: programs with other bits or defects", len(accused), 0, detail=accused)


def record(state):
    """Rows of all that was found so far; a part that has not come to its end says so."""
    rows, parts = [], []
    for name in PARTS:
        part = state.get(name)
        if not part or not part["found"]:
            rows.append(Row(name, "not run yet"))
            continue
        rows += globals()[f"rows_of_{name}"](part["found"])
        parts.append({"part": name} | {key: part[key] for key in ("seconds", "commit", "is_over")})
    directory = results_directory(machine.describe())
    write_group("soak", rows, sum(part["seconds"] for part in parts), directory, parts)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, help="goes on where the run of this file stopped")
    parser.add_argument("--shapes", type=int, help="only this part, printed as JSON")
    args = parser.parse_args()
    if args.shapes:
        return print(json.dumps(call_with_shapes(args.shapes)))
    state = {}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text())

    def save():
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps(state))
        record(state)

    run_parts(state, save)
    rows = record(state)
    for row in rows:
        print_row(row)
    if args.state:
        args.state.unlink()
    return 0 if all(row.ok is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
