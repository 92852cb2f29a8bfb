"""Writes the table of docs/papers.md from the newest paper_models.json; --check compares."""

import argparse
import json
import sys

from benchmarks import machine
from benchmarks.paper_rows import BASELINE, LIMITS, MODELS, POLICIES, ratio

DOCS = machine.ROOT / "docs" / "papers.md"
RESULTS = machine.ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- paper_models.json begins -->\n", "<!-- paper_models.json ends -->\n"


def newest():
    files = sorted(RESULTS.glob("*/paper_models.json"))
    return json.loads(files[-1].read_text())["rows"][0]["detail"]["plans"]


def beside(name, plans, policy):
    """Our ratio, and the paper's in brackets; the 2018 paper's is FusionStitching's too."""
    model = MODELS[name]
    theirs = model.paper_ratio(policy)
    if theirs is None and policy == "fusionstitching2020":
        theirs = model.fs18
    return f"{ratio(plans, policy):.2f}" + (f" ({theirs:.2f})" if theirs else "")


def line(name, plans):
    counts = [str(plans[policy]["kernels"]) for policy in POLICIES]
    copies = " / ".join(str(plans[policy]["copies"]) for policy in POLICIES)
    ratios = [beside(name, plans, policy) for policy in LIMITS]
    times = [f"{plans[p]['us'] / plans[BASELINE]['us']:.2f}" for p in POLICIES[1:]]
    name = name.removesuffix(" train")
    return [name, *counts, copies, *ratios, *times]


def table(details):
    heads = ["model", "mode", *(f"`{p}`" for p in POLICIES), "copies",
             *(f"`{p}` (paper)" for p in LIMITS),
             *(f"time `{p}`" for p in POLICIES[1:])]  # fmt: skip
    lines = [heads, ["---"] * len(heads)]
    for name, plans in details.items():
        first, *rest = line(name, plans)
        lines.append([first, MODELS[name].mode, *rest])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def fill(text, details):
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(details) + END + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    text = DOCS.read_text()
    made = fill(text, newest())
    if check and made != text:
        print("stale: docs/papers.md (run python -m benchmarks.paper_table)")
        return 1
    if not check:
        DOCS.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
