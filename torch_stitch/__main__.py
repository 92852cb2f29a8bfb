"""python -m torch_stitch explain|ptxsim|clock: each says with --help what it takes."""

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from torch_stitch import explain, ptxsim
from torch_stitch._core import StitchError, UnsupportedError, run_words, time_kernel


def load(place: str) -> Any:
    """FILE.py:FUNCTION -> what the function returns."""
    path, _, name = place.rpartition(":")
    if not name or not Path(path).is_file():
        sys.exit(f"found {place!r}; it must be FILE.py:FUNCTION, where FILE.py is a file")
    spec: Any = importlib.util.spec_from_file_location("explained", path)
    module = sys.modules["explained"] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        known = [n for n, f in vars(module).items() if callable(f) and not n.startswith("_")]
        sys.exit(f"{path} has no {name}; it has {', '.join(known) or 'no functions'}")
    return getattr(module, name)()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torch_stitch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("explain", help="what would be launched, without running it")
    command.add_argument("place", metavar="FILE.py:FUNCTION")
    command.add_argument("--target", help="of docs/settings.md; else the inputs' device")
    command.add_argument("--policy", default="auto")
    command.add_argument("--clock", action="store_true", help="also how long a GPU's kernels take")
    command.add_argument("--training", action="store_true", help="also the backward pass")
    command.add_argument("--json", action="store_true")
    launch = argparse.ArgumentParser(add_help=False)
    launch.add_argument("file", metavar="FILE", help="CUDA text; PTX (ptxsim) or a cubin (clock)")
    launch.add_argument("--kernel", required=True)
    for name, threads in (("--grid", [1]), ("--block", [32])):
        launch.add_argument(name, type=int, nargs="+", default=threads, help="x y z")
    launch.add_argument("--shared-bytes", type=int, default=0)
    launch.add_argument("--target", default="h200", help="of docs/settings.md; ptxsim: two_sm")
    launch.add_argument("--json", action="store_true")
    command = commands.add_parser("ptxsim", parents=[launch], help="runs one kernel, checked")
    clock = commands.add_parser("clock", parents=[launch], help="how long one kernel takes")
    command.add_argument("--arg", dest="words", action="append", default=[], help=ptxsim.__doc__)
    for its, name, default in ((command, "orders", 5), (command, "seed", 0), (clock, "trips", 8)):
        its.add_argument("--" + name, type=int, default=default)
    for name, default in (("checks", True), ("clock", False), ("cooperative", False)):
        command.add_argument("--" + name, action=argparse.BooleanOptionalAction, default=default)
    clock.add_argument("--args", default="", help="1048576*f32,2048*i64<30522,null,4096")
    clock.add_argument("--trace", default="", metavar="TO", help="a file for chrome://tracing")
    args = vars(parser.parse_args(arguments))
    as_json, name = args.pop("json"), args.pop("command")
    if name == "explain":
        function, inputs = load(args.pop("place"))
        result: Any = explain(function, *inputs, **args)
    else:
        try:
            source = Path(args.pop("file")).read_bytes()
            result = (time_kernel if name == "clock" else run_words)(source, **args)
        except (OSError, StitchError, UnsupportedError) as error:
            parser.error(str(error))
    print(result.to_json() if as_json else result)
    return 1 if getattr(result, "findings", ()) else 0


if __name__ == "__main__":
    sys.exit(main())
