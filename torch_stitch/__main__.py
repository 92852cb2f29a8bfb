"""python -m torch_stitch explain FILE.py:FUNCTION [--target h200] [--json]
python -m torch_stitch ptxsim FILE.cu --kernel K --grid 4 --block 32 2 --arg f32[1024]=rand:in

FUNCTION() returns (callable, inputs).  The second form exits with 1 when something is found.
"""

import argparse
import importlib.util
import os
import sys

from torch_stitch import explain, ptxsim
from torch_stitch._core import StitchError, UnsupportedError


def load(place):
    """FILE.py:FUNCTION -> what the function returns."""
    path, _, name = place.rpartition(":")
    if not name or not os.path.isfile(path):
        sys.exit(f"found {place!r}; it must be FILE.py:FUNCTION, where FILE.py is a file")
    spec = importlib.util.spec_from_file_location("explained", path)
    module = sys.modules["explained"] = importlib.util.module_from_spec(spec)
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
    command = commands.add_parser("ptxsim", help="one kernel on the CPU, checked; see ptxsim.run")
    command.add_argument("file", metavar="FILE", help="CUDA or PTX text")
    command.add_argument("--kernel", required=True)
    command.add_argument("--grid", type=int, nargs="+", default=[1], help="blocks: x y z")
    command.add_argument("--block", type=int, nargs="+", default=[32], help="threads")
    command.add_argument("--arg", dest="words", action="append", default=[], help=ptxsim.__doc__)
    command.add_argument("--target", default="h200", help="a100, h100, h200, b200 or two_sm")
    for name, default in (("shared_bytes", 0), ("orders", 5), ("seed", 0)):
        command.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    command.add_argument("--cooperative", action="store_true")
    command.add_argument("--no-checks", dest="checks", action="store_false")
    command.add_argument("--json", action="store_true")
    args = vars(parser.parse_args(arguments))
    as_json = args.pop("json")
    if args.pop("command") == "explain":
        function, inputs = load(args.pop("place"))
        result = explain(function, *inputs, **args)
    else:
        try:
            result = ptxsim.run_command(**args)
        except (OSError, StitchError, UnsupportedError) as error:
            parser.error(str(error))
    print(result.to_json() if as_json else result)
    return 1 if getattr(result, "findings", ()) else 0


if __name__ == "__main__":
    sys.exit(main())
