"""Fits the clock's numbers of source F: `python -m benchmarks.fit_clock --output D [--keep]`.

On half of the kernels that `python -m benchmarks.gpu_kernels --output D` has measured, chosen by
their names; the other half is a check.  Each value in turn is written to numbers.def, built and
asked for: minutes.  Writes D/clock_fit.json; without --keep numbers.def is left as it was.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks import clock_errors, machine

VALUES = {"issue_cycles": (1, 1.05, 1.1, 1.15, 1.2, 1.25), "memory_queue": (48, 96, 192)}
NUMBERS = machine.ROOT / "csrc/clock/machine/numbers.def"


def is_fitted(row):
    """Whether a row is of the half that numbers are fitted to: kernels of one name are in one."""
    return hashlib.sha256(row["kernel"].encode()).digest()[0] % 2 == 0


def halves(rows):
    """(fitted, checked), of the rows that the clock could time."""
    rows = [row for row in rows if "clock_us" in row]
    return [[row for row in rows if is_fitted(row) == wanted] for wanted in (True, False)]


def fit(ask, values=None):
    """What `ask` (numbers -> rows) is nearest with, one number after the other, and how near."""
    values = values or VALUES
    best, errors = {name: tried[0] for name, tried in values.items()}, {}
    for name, tried in values.items():
        found = {
            value: clock_errors.summarise(halves(ask({**best, name: value}))[0]) for value in tried
        }
        if not any(summary["kernels"] for summary in found.values()):
            raise SystemExit("no kernel of the half to fit to has been measured and timed")
        errors[name] = {value: round(each["mean_error"], 4) for value, each in found.items()}
        best[name] = min(errors[name], key=errors[name].get)
        print(name, errors[name], flush=True)
    fitted, checked = map(clock_errors.summarise, halves(ask(best)))
    return {"numbers": best, "mean_errors": errors, "fitted": fitted, "checked": checked}


def write(values):
    text = NUMBERS.read_text()
    for name, value in values.items():
        text = re.sub(rf"(CLOCK_NUMBER\({name}, )[\d.]+", rf"\g<1>{value}", text)
    NUMBERS.write_text(text)


def ask(values, args):
    """The rows of the table with these values."""
    write(values)
    subprocess.run(["make", "build"], cwd=machine.ROOT, check=True, stdout=subprocess.DEVNULL)
    command = [sys.executable, "-m", "benchmarks.gpu_kernels", "--output", str(args.output)]
    command += ["--yardstick", args.yardstick, "--clock"]
    subprocess.run(command, cwd=machine.ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads((args.output / "clock_error.json").read_text())["rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--yardstick", default="", help="a folder of cubins that were measured too")
    parser.add_argument("--keep", action="store_true", help="leave the best in numbers.def")
    args = parser.parse_args()
    args.output, before = args.output.absolute(), NUMBERS.read_text()
    try:
        found = fit(lambda values: ask(values, args))
        before = NUMBERS.read_text() if args.keep else before
    finally:
        NUMBERS.write_text(before)
    (args.output / "clock_fit.json").write_text(json.dumps(found, indent=1) + "\n")
    for half in ("fitted", "checked"):
        print(half, json.dumps(found[half]))
    if not args.keep:
        subprocess.run(["make", "build"], cwd=machine.ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
