"""Prints one stage of what the compiler makes of a function, and runs nothing of it:

    show.py FILE.py:FUNCTION --stage graph|rewrite|plan|schedule|emit [--target h200]

FUNCTION() returns (callable, inputs).  A function with graph breaks, or one traced with
--training, has several graphs; they are printed in the order in which they are compiled.
"""

import argparse
import sys
from typing import NamedTuple

from torch_stitch import _core
from torch_stitch.__main__ import load
from torch_stitch.explain import trace_graphs
from torch_stitch.fx_import import import_graph

STAGES = ("graph", "rewrite", "plan", "schedule", "emit")


class CapturedGraph(NamedTuple):
    kind: str  # inference, forward or backward
    graph: object  # _core.Graph
    calls: object  # _core.CallTable
    target: str

    def compile(self, **options):
        """The core's report on it: stages, kernels with their text and compile time, calls."""
        return _core.compile(self.graph, self.calls, options, self.target, load=False).report()

    def show(self, stage, **options):
        return _core.show_stage(self.graph, options, self.target, stage)


def capture_graphs(fn, inputs, target=None, training=False):
    """Every graph that torch.compile would hand to the core for fn(*inputs); no kernel runs."""

    def capture(gm, found):
        imported = import_graph(gm, found)
        return imported.graph, imported.calls, found or "cpu"

    found = trace_graphs(capture, fn, inputs, target, training)
    return [CapturedGraph(kind, *captured) for kind, captured in found]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("place", metavar="FILE.py:FUNCTION")
    parser.add_argument("--stage", choices=STAGES, default="plan")
    parser.add_argument("--target", help="cpu, a100, h100, h200 or b200; else the inputs' device")
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--training", action="store_true", help="also the backward pass")
    args = parser.parse_args(arguments)
    fn, inputs = load(args.place)
    graphs = capture_graphs(fn, inputs, args.target, args.training)
    for captured in graphs:
        if len(graphs) > 1:
            print(f"{captured.kind} graph:")
        print(captured.show(args.stage, policy=args.policy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
