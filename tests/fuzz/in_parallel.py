"""A random test by many processes, for a time: each has a share of it, and goes on if it ends.

    python tests/fuzz/in_parallel.py --jobs 14 --seconds 100 --output DIR SCRIPT [its arguments]

SCRIPT is random_programs.py, alias_programs.py or opinfo_sweep.py.  A process that ends by a signal
or by a CUDA error that stays, or that gets nowhere, has a next one, which leaves out what that one
was at.  DIR gets the states, what was printed, and summary.json with all that failed.
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
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import machine  # noqa: E402

MOST_LINES = 55
WIDTH = 170


class Share:
    """A share of the work, and the process that is at it."""

    def __init__(self, args, index):
        self.state, self.log = (args.output / f"share_{index}.{kind}" for kind in ("json", "txt"))
        script = Path(__file__).parent / args.script
        self.command = [
            sys.executable, "-W", "ignore", str(script), *args.arguments,
            "--share", f"{index}/{args.jobs}", "--state", str(self.state.absolute()),
        ]  # fmt: skip
        self.starts, self.is_over = 0, False
        self.start()

    def start(self):
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | one_thread,
            )  # fmt: skip
        self.starts, self.since = self.starts + 1, time.time()

    def watch(self, args):
        """Starts the next process where this one ended before its work did."""
        if self.is_over:
            return
        code = self.process.poll()
        if code is None:
            moved = self.state.stat().st_mtime if self.state.exists() else 0
            if time.time() - max(moved, self.since) > args.stuck:
                self.end()
                self.start()
        elif code in (0, 1) or self.starts > args.starts:
            self.is_over = True
        else:
            self.start()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Found(NamedTuple):
    name: str
    text: str


def read(path):
    """(counts, failures) of a state: by seeds, or by ops and dtypes; what a share is at is left."""
    try:
        state = json.loads(path.read_text())
    except (OSError, ValueError):  # killed while it wrote
        return {"states that are no JSON": 1}, []
    if "next" in state:
        failures = [Found(f"seed {seed}", text) for seed, text in state["failed"].items()]
        return {"checked": state["checked"], "excused": len(state["excused"])}, failures
    rows = {name: row for name, row in state.items() if not row.get("begun")}
    counts = collections.Counter({"ops and dtypes": len(rows)})
    for row in rows.values():
        counts["samples"] += row["samples"]
        counts["excused samples"] += len(row["excused"])
        counts["skipped"] += "skipped" in row
        counts["calls"] += row["calls"]
    return counts, [Found(name, text) for name, row in rows.items() for text in row["faults"]]


def kind_of(text):
    """What is alike of failures: no numbers, and no sample."""
    text = text.split("}): ", 1)[-1]
    return re.sub(r"[\d.]+(e-?\d+)?", "#", text)[:60]


def summarize(counts, failures):
    """Lines: what failed, by kind, the most frequent first."""
    kinds = collections.defaultdict(list)
    for found in failures:
        kinds[kind_of(found.text)].append(found)
    lines = [f"{len(failures)} failed of {dict(counts)}"]
    ordered = sorted(kinds.values(), key=len, reverse=True)
    for alike in ordered[: MOST_LINES // 2]:
        names = list(dict.fromkeys(found.name for found in alike))
        lines.append(f"{len(alike)} x {', '.join(names[:8])}"[:WIDTH])
        lines.append(f"    {' '.join(alike[0].text.split())}"[: 2 * WIDTH])
    if len(ordered) > MOST_LINES // 2:
        lines.append(f"and {len(ordered) - MOST_LINES // 2} more kinds, in summary.json")
    return lines


def merge(args, shares):
    counts, failures = collections.Counter(), []
    for share in shares:
        some, found = read(share.state)
        counts.update(some)
        failures += found
    counts["processes"] = sum(share.starts for share in shares)
    counts["shares that are through"] = sum(share.is_over for share in shares)
    kept = {"counts": dict(counts), "failures": [found._asdict() for found in failures]}
    text = json.dumps(machine.describe() | kept, indent=1)
    (args.output / "summary.json").write_text(text + "\n")
    return counts, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--stuck", type=float, default=90, help="seconds that a step may take")
    parser.add_argument("--starts", type=int, default=100, help="processes that a share may use up")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    start = time.time()
    shares = [Share(args, index) for index in range(args.jobs)]
    try:
        while time.time() - start < args.seconds and not all(share.is_over for share in shares):
            time.sleep(0.2)
            for share in shares:
                share.watch(args)
    finally:
        for share in shares:
            share.end()
    counts, failures = merge(args, shares)
    print("\n".join(summarize(counts, failures)))
    broken = [share for share in shares if not share.state.exists()]
    for share in broken[:1]:
        print(f"{len(broken)} shares checked nothing:\n{share.log.read_text()[-2000:]}")
    return 1 if failures or broken else 0


if __name__ == "__main__":
    sys.exit(main())
