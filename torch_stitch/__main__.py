"""python -m torch_stitch explain FILE.py:FUNCTION [--target h200] [--json]

FUNCTION() returns (callable, inputs).
"""

import argparse
import importlib.util
import os
import sys

from torch_stitch import explain


def load(place):
    """FILE.py:FUNCTION -> what the function returns."""
    path, _, name = place.rpartition(":")
    if not name or not os.path.isfile(path):
        sys.exit(f"found {place!r}; it must be FILE.py:FUNCTION, where FILE.py is a file")
    spec = importlib.util.spec_from_file_location("explained", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["explained"] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        known = [n for n, f in vars(module).items() if callable(f) and not n.startswith("_")]
        sys.exit(f"{path} has no {name}; it has {', '.join(known) or 'no functions'}")
    return getattr(module, name)()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="torch_stitch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("explain", help="what would be launched, without running it")
    command.add_argument("place", metavar="FILE.py:FUNCTION")
    command.add_argument("--target", help="cpu, a100, h100, h200 or b200; else the inputs' device")
    command.add_argument("--policy", default="auto")
    command.add_argument("--training", action="store_true", help="also the backward pass")
    command.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    function, inputs = load(args.place)
    report = explain(
        function, *inputs, target=args.target, policy=args.policy, training=args.training
    )
    print(report.to_json() if args.json else report)


if __name__ == "__main__":
    main()
