"""Fits the clock's numbers of source F: `python -m benchmarks.fit_clock --output D --yardstick Y`.

On half of the kernels that were measured, every second by name; the other half is a check.  Writes
csrc/clock/machine/numbers.def, builds and asks for each value in turn: minutes.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import clock_errors, machine

VALUES = {"issue_cycles": (1, 1.05, 1.1, 1.15, 1.2, 1.25), "memory_queue": (48, 96, 192)}
NUMBERS = machine.ROOT / "csrc/clock/machine/numbers.def"


def halves(rows):
    """(fitted, checked): kernels that two cases have are in one half."""
    rows = [r for r in rows if "clock_us" in r]
    names = sorted({r["kernel"] for r in rows})
    return [[r for r in rows if r["kernel"] in names[i::2]] for i in (0, 1)]


def error(rows):
    return statistics.mean(abs(r["clock_us"] / r["measured_us"] - 1) for r in rows)


def write(values):
    text = NUMBERS.read_text()
    for name, value in values.items():
        text = re.sub(rf"(CLOCK_NUMBER\({name}, )[\d.]+", rf"\g<1>{value}", text)
    NUMBERS.write_text(text)


def ask(values, args):
    """The rows of the table with these values."""
    write(values)
    subprocess.run(["make", "build"], cwd=machine.ROOT, check=True, stdout=subprocess.DEVNULL)
    command = ["--output", args.output, "--yardstick", args.yardstick, "--clock"]
    command = [sys.executable, "-m", "benchmarks.gpu_kernels", *map(str, command)]
    subprocess.run(command, cwd=machine.ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads((args.output / "clock_error.json").read_text())["rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--yardstick", type=Path, required=True)
    args = parser.parse_args()
    best = {name: values[0] for name, values in VALUES.items()}
    for name, values in VALUES.items():
        errors = {v: error(halves(ask({**best, name: v}, args))[0]) for v in values}
        best[name] = min(errors, key=errors.get)
        print(name, {v: round(e, 4) for v, e in errors.items()}, flush=True)
    for half, rows in zip(("fitted", "checked"), halves(ask(best, args)), strict=True):
        print(half, json.dumps(clock_errors.summarise(rows)))


if __name__ == "__main__":
    main()
