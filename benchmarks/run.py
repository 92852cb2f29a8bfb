"""Measures what must show: `python -m benchmarks.run [--only TEXT] [--yardstick DIR]`.

Prints name, value and limit of each figure and writes one JSON file per group of figures to
benchmarks/results/<date>-<machine class>/, so that a part may be measured again by itself.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

from benchmarks import (
    clock_rows,
    clock_sizes,
    clock_speed,
    decoder_rows,
    limits,
    machine,
    paper_rows,
    rows,
    run_time_sizes,
    suite_rows,
    workload_rows,
)
from benchmarks.cases import CASES
from benchmarks.rows import Request, Row

RESULTS = machine.ROOT / "benchmarks" / "results"
GROUPS = {**rows.GROUPS, **suite_rows.GROUPS, **workload_rows.GROUPS, **limits.GROUPS}
GROUPS |= clock_rows.GROUPS | clock_sizes.GROUPS | decoder_rows.GROUPS | clock_speed.GROUPS
GROUPS |= paper_rows.GROUPS | run_time_sizes.GROUPS
NAME_COLUMNS = 76


def measure_group(name, request):
    """The rows of one group; a group that breaks is a row that says so."""
    try:
        return list(GROUPS[name](request))
    except Exception as error:
        return [Row(name, "failed: " + " ".join(str(error).split())[-300:])]


def print_row(row):
    limit = "" if row.limit is None else f"{'>=' if row.at_least else '<='} {row.limit:g}"
    verdict = {True: "ok", False: "SHORT", None: ""}[row.ok]
    value = row.value if isinstance(row.value, str) else f"{row.value:g}{row.unit}"
    print(f"{row.name:{NAME_COLUMNS}} {value:>9} {limit:>9} {verdict}", flush=True)


def write_group(name, rows, seconds, directory, table=()):
    """`table` has what lies behind the rows, and stands one entry per line."""
    directory.mkdir(parents=True, exist_ok=True)
    result = {**machine.describe(), "seconds": round(seconds, 1)}
    result["rows"] = [dataclasses.asdict(row) | {"ok": row.ok} for row in rows]
    text = json.dumps(result, indent=1)
    if table:
        lines = ",\n  ".join(map(json.dumps, table))
        text = text.removesuffix("\n}") + f',\n "table": [\n  {lines}\n ]\n}}'
    (directory / f"{name}.json").write_text(text + "\n")


def results_directory(about, results=RESULTS):
    """Where figures of this day and machine are committed; `about` is machine.describe()'s."""
    return results / f"{about['date']}-{about['machine']}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="the groups whose name holds this: " + ", ".join(GROUPS))
    parser.add_argument("--case", choices=CASES, help="one subgraph; its figures are not written")
    parser.add_argument("--yardstick", help="the folder of compare.py")
    parser.add_argument("--rounds", type=int, default=Request.rounds)
    parser.add_argument(
        "--threads", type=int, default=Request.threads,
        help="of the CPU; with 1, CPU time is measured, which a busy machine disturbs less",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, help="the folder for JSON files")
    args = parser.parse_args(arguments)
    names = [name for name in GROUPS if args.only in name] if args.only else list(GROUPS)
    if not names:
        parser.error(f"no group holds {args.only!r}; groups are {', '.join(GROUPS)}")
    found = machine.describe()
    directory = args.output or results_directory(found)
    cases = (args.case,) if args.case else tuple(CASES)
    yardstick = args.yardstick and os.path.abspath(args.yardstick)
    request = Request(args.rounds, args.threads, yardstick, cases)
    print(f"{'figure':{NAME_COLUMNS}} {'value':>9} {'limit':>9}")
    verdicts = []
    for name in names:
        start = time.perf_counter()
        found_rows = measure_group(name, request)
        for row in found_rows:
            print_row(row)
            if args.case and row.detail:
                print(json.dumps(row.detail, indent=1))
        verdicts += [row.ok for row in found_rows]
        if not args.case:
            file = name if args.threads == Request.threads else f"{name}-{args.threads}thread"
            write_group(file, found_rows, time.perf_counter() - start, directory)
    print(f"{verdicts.count(True)} figures hold, {verdicts.count(False)} fall short")
    return 0


if __name__ == "__main__":
    sys.exit(main())
