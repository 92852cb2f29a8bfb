"""Times each kernel on a GPU: `python -m benchmarks.gpu_kernels --output DIR`.

    --warm 8             first compiles every function for each rival, in so many processes
    (nothing)            measures, one function at a time, in a child that is replaced if it hangs
    --cubins             times the kernels of the yardstick's cubins (benchmarks/gpu_cubins.py)
    --clock              what the clock says of all of them (benchmarks/clock_errors.py); no GPU

A function is one file in DIR/measured, DIR/compiled or DIR/failed; what has one is not done again.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import torch
import torch._inductor.config

from benchmarks import clock_errors, gpu_cubins, gpu_times, machine
from benchmarks.cases import CASES
from benchmarks.measure import geometric_mean
from benchmarks.rows import Row
from benchmarks.run import write_group

RIVALS = ("eager", "inductor", *gpu_times.OURS)
SIZES = {"medium": "of_medium_size", "timed": "timed", "planned": "planned"}
LONGEST = 300  # characters of an error that are kept


class Work(NamedTuple):
    """A function to measure; `make` gives it and its inputs."""

    name: str  # suite.case
    make: object
    is_training: bool = False
    dynamic: tuple = ()  # (input, dimension)


def list_works(suites, yardstick, only=""):
    """name -> Work, of the suites asked for; "yardstick" is one."""
    works = []
    for suite in suites:
        if suite == "yardstick":
            if not yardstick:
                continue
            works += [
                Work(f"{suite}.{name}", case.make, case.mode == "training", tuple(case.dynamic))
                for name, case in gpu_cubins.load_yardstick(yardstick).items()
            ]
        else:
            works += [
                Work(f"{suite}.{name}", getattr(c, SIZES[suite])) for name, c in CASES.items()
            ]
    return {work.name: work for work in works if only in work.name}


def shorten(error):
    return f"{type(error).__name__}: {error}"[:LONGEST]


def write(path, result):
    """Whole or not at all: a process may be killed at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)


def compile_work(work):
    """What a later process finds compiled: nothing of stitch runs, Inductor's function does."""
    found = {"name": work.name, "seconds": {}, "errors": {}}
    start = time.perf_counter()
    try:
        fn, inputs = work.make()
        found["kernels"] = clock_errors.list_kernels(
            fn, inputs, work.is_training, work.dynamic
        )
    except Exception as error:
        found["errors"]["stitch"] = shorten(error)
    found["seconds"]["stitch"] = time.perf_counter() - start
    start = time.perf_counter()
    try:
        if torch.cuda.is_available():
            gpu_times.make_step("inductor", work)
    except Exception as error:
        found["errors"]["inductor"] = shorten(error)
    found["seconds"]["inductor"] = time.perf_counter() - start
    return found


def measure_work(work):
    """Kernels and microseconds of a call of each rival."""
    found = {"name": work.name, "rivals": {}}
    for rival in RIVALS:
        start = time.perf_counter()
        try:
            found["rivals"][rival] = gpu_times.measure_rival(rival, work)
        except Exception as error:
            found["rivals"][rival] = {"error": shorten(error)}
        found["rivals"][rival]["seconds"] = round(time.perf_counter() - start, 2)
    return found


def run_child(works, directory, is_compiling):
    """Does all that have no file; a CUDA error that stays ends the process, another one follows."""
    torch._inductor.config.autotune_local_cache = False  # choices are made with the GPU alone
    if is_compiling:
        torch._inductor.config.compile_threads = 1
        torch.set_num_threads(2)
    elif torch.cuda.is_available():
        gpu_times.start_profiler()
    for name, work in works.items():
        torch._dynamo.reset()
        torch.manual_seed(0)
        found = compile_work(work) if is_compiling else measure_work(work)
        write(directory / ("compiled" if is_compiling else "measured") / f"{name}.json", found)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def print_work(found):
    """One line: kernels and their microseconds of each rival, and how much faster ours are."""
    texts, us = [], {}
    for rival, its in found.get("rivals", {}).items():
        if "kernels" in its:
            us[rival] = its["us"]
            count = sum(k["count"] for k in its["kernels"])
            texts.append(f"{rival} {count:g} x {its['us']:.1f} us")
        else:
            texts.append(f"{rival} {its['error'][:60]}")
    faster = us["inductor"] / us["stitch"] if us.get("stitch") and "inductor" in us else None
    texts.append(f"ratio {faster:.2f}" if faster else found.get("error", "")[:60])
    print(f"{found['name']:48} " + ", ".join(texts), flush=True)


def supervise(names, args, extra, deadline):
    """Children do `names` in order; one that says nothing for too long is killed and replaced."""
    folder = args.output / ("compiled" if extra else "measured")
    stall = args.stall * (3 if extra else 1)
    while names and time.monotonic() < deadline:
        command = [
            sys.executable, "-m", "benchmarks.gpu_kernels", "--output", str(args.output), "--child",
            "--yardstick", args.yardstick, "--suite", *args.suite, "--names", *names, *extra,
        ]  # fmt: skip
        log = args.output / f"{folder.name}.log"
        with log.open("a") as out:
            child = subprocess.Popen(command, cwd=machine.ROOT, stdout=out, stderr=out)
        told, why, left = time.monotonic(), None, len(names)
        while names and not why:
            ended = child.poll()
            while names and (folder / f"{names[0]}.json").exists():
                told = time.monotonic()
                name = names.pop(0)
                if not extra:
                    print_work(json.loads((folder / f"{name}.json").read_text()))
            if time.monotonic() > deadline:
                why = "no time left"
            elif time.monotonic() - told > stall:
                why = f"killed: nothing for {stall} s"
            elif ended is not None and names:
                why = f"the process ended with status {ended}, see {log.name}"
            time.sleep(0.1)
        stop(child, patient=not why)
        is_guilty = len(names) == left or why and why.startswith("killed")  # else one before it was
        if names and is_guilty and why != "no time left":
            failed = {"name": names.pop(0), "error": why}
            write(args.output / "failed" / f"{folder.name}.{failed['name']}.json", failed)
            print_work(failed)


def stop(child, patient):
    """A child that is done may end by itself."""
    try:
        child.wait(20 if patient else 0.1)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def left_to_do(works, args, folder):
    """Names without a file, those that have failed left out too."""
    done = args.output / folder, args.output / "failed"
    return [
        name
        for name in works
        if not (done[0] / f"{name}.json").exists()
        and not (done[1] / f"{folder}.{name}.json").exists()
    ]


def warm(works, args, deadline):
    names = left_to_do(works, args, "compiled")
    shares = [names[i :: args.warm] for i in range(args.warm)]
    threads = [
        threading.Thread(target=supervise, args=(share, args, ["--compile-only"], deadline))
        for share in shares
        if share
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


TIMES = {"us": "kernels alone", "graph_us": "in a CUDA graph", "stream_us": "in a stream"}


def times_of(found):
    """One line of the table: launches of a call, and its microseconds by way of measuring."""
    rivals = {}
    for rival, its in found["rivals"].items():
        known = {key: round(its[key], 2) for key in TIMES if its.get(key)}
        launches = {"launches": sum(k["count"] for k in its["kernels"])} if "kernels" in its else {}
        rivals[rival] = known | launches | {k: its[k] for k in its if k.endswith("error")}
    return {"name": found["name"], **rivals}


def compare_times(table, key):
    """name -> how many times faster than Inductor, of those that both could run."""
    return {
        row["name"]: row["inductor"][key] / row["stitch"][key]
        for row in table
        if key in row.get("stitch", {}) and key in row.get("inductor", {})
    }


def summarise(works, args):
    """Prints geometric means and the worst of all that is measured; writes gpu_kernels.json."""
    files = [args.output / "measured" / f"{name}.json" for name in works]
    table = [times_of(json.loads(path.read_text())) for path in files if path.exists()]
    print(f"\n{len(table)} of {len(works)} measured")
    rows = [Row("functions that are not measured", len(works) - len(table), 0)]
    for key, how in TIMES.items():
        ratios = compare_times(table, key)
        mean = round(geometric_mean(list(ratios.values())), 3)
        worst = dict(sorted(ratios.items(), key=lambda item: item[1])[:5])
        rows.append(
            Row(f"time of Inductor / stitch, {how}, geometric mean", mean, unit="x", detail=worst)
        )
        worst = ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst.items())
        print(f"{rows[-1].name}: {mean:.3f}; worst: {worst}")
    write_group("gpu_kernels", rows, 0, args.output, table)


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--suite", nargs="+", choices=[*SIZES, "yardstick"],
        default=["medium", "planned", "yardstick"],
    )  # fmt: skip
    parser.add_argument("--only", default="", help="functions whose name holds this")
    parser.add_argument("--yardstick", default="", help="a folder of cases.py and of cubins")
    parser.add_argument("--seconds", type=float, default=1500, help="for this pass")
    parser.add_argument("--stall", type=float, default=60, help="seconds; thrice to compile")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="processes that compile")
    parser.add_argument("--cubins", action="store_true")
    parser.add_argument("--clock", action="store_true")
    for name in ("--child", "--compile-only"):  # what children are told
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--names", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    args.output = args.output.absolute()
    args.yardstick = args.yardstick and str(Path(args.yardstick).absolute())
    if not args.yardstick and args.cubins:
        parser.error("--cubins are those of a --yardstick")
    if not (torch.cuda.is_available() or args.clock or args.warm or args.compile_only):
        parser.error("there is no GPU to measure; --warm and --clock work without one")
    return args


def main(arguments=None):
    args = read_arguments(arguments)
    works = list_works(args.suite, args.yardstick, args.only)
    args.output.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + args.seconds
    if args.child:
        asked = {name: works[name] for name in args.names}
        run_child(asked, args.output, args.compile_only)
    elif args.warm:
        warm(works, args, deadline)
        done = len(works) - len(left_to_do(works, args, "compiled"))
        print(f"{done} of {len(works)} compiled or failed")
    elif args.cubins:
        gpu_cubins.time_all(Path(args.yardstick), args.output, args.only, deadline)
    elif args.clock:
        clock_errors.tabulate(Path(args.yardstick), args.output, args.only)
    else:
        supervise(left_to_do(works, args, "measured"), args, [], deadline)
        summarise(works, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
