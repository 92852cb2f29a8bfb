"""A run of pytest as a result file: `python -m benchmarks.pytest_summary NAME XML`.

XML is what --junitxml wrote.  The figures are counts of tests and of the defects that ptxsim
reported; one that did not run says why in `detail`.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from benchmarks import machine
from benchmarks.rows import Row
from benchmarks.run import print_row, results_directory, write_group

FINDINGS = re.compile(r"ptxsim found (\d+) defect")
LONGEST = 500  # characters of a failure that are kept


def outcome_of(case):
    """passed, failed or skipped, and the words that came with it."""
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", (child.get("message") or child.text or "")
        if child.tag == "skipped":
            return "skipped", child.get("message") or ""
    return "passed", ""


def summarize(path, what):
    """Seconds, and the rows, of a junit file."""
    root = ElementTree.parse(path).getroot()
    cases = [(case, *outcome_of(case)) for case in root.iter("testcase")]
    counts = Counter(outcome for _, outcome, _ in cases)
    findings = sum(int(n) for _, _, words in cases for n in FINDINGS.findall(words))
    failed = {
        f"{case.get('classname')}.{case.get('name')}": words[:LONGEST]
        for case, outcome, words in cases
        if outcome == "failed"
    }
    reasons = Counter(
        words.partition("\n")[0] for _, outcome, words in cases if outcome == "skipped"
    )
    files = Counter(f"{case.get('classname')}: {outcome}" for case, outcome, _ in cases)
    seconds = sum(float(suite.get("time", 0)) for suite in root.iter("testsuite"))
    return seconds, [
        Row(f"{what}: tests passed", counts["passed"], 1, at_least=True, detail=dict(files)),
        Row(f"{what}: tests failed", counts["failed"], 0, detail=failed),
        Row(f"{what}: tests skipped", counts["skipped"], detail=dict(reasons)),
        Row(f"{what}: defects reported by ptxsim", findings, 0),
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the result file")
    parser.add_argument("xml", type=Path)
    parser.add_argument("--what", help="ran, in words; the name if left out")
    parser.add_argument("--output", type=Path, help="the folder for the JSON file")
    args = parser.parse_args(arguments)
    found = machine.describe()
    seconds, rows = summarize(args.xml, args.what or args.name)
    directory = args.output or results_directory(found)
    write_group(args.name, rows, seconds, directory)
    for row in rows:
        print_row(row)
    return 0 if all(row.ok is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
