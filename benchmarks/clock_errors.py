"""The clock (docs/clock.md) against kernels that benchmarks/gpu_kernels.py has timed."""

import gzip
import json
import math
import re
import statistics

import torch

from benchmarks import gpu_cubins, machine
from tools.show import capture_graphs
from torch_stitch import _core

TARGET = "h200"
ANY_SIZE = 1 << 30  # elements behind a pointer of which no more is known
PHASES = {"first_phase": "0", "end_phase": "1000000"}
ALL_PHASES = ",".join(PHASES.values())
TYPES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32", "fp64": "f64", "i1": "bool"}
WIDTHS = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i64": 8, "i32": 4, "bool": 1, "i8": 1}
PARAMETER = re.compile(r"(?:const )?(\w+)(\*?) (?:__restrict__ )?(\w+)$")
VALUE = re.compile(r"^(%\d+) = .* : \w+\[([\ds,]*)\]", re.MULTILINE)
SYMBOL = re.compile(r"\b(s\d+) = input\(\d+\) hint (\d+)")
RESIDENT = re.compile(r"blocks wait for each other, and of \d+ only (\d+) are resident")


def count_elements(rewritten, hints):
    """%name -> elements, of a graph as `show.py --stage rewrite` prints it; symbols by hints."""
    shapes = dict(VALUE.findall(rewritten))
    return {
        name: math.prod(int(hints.get(extent, extent)) for extent in filter(None, s.split(",")))
        for name, s in shapes.items()
    }


def names_of_kernel(section):
    """What a kernel of a printed plan loads and stores, each once, in its parameters' order."""
    lines = re.findall(r"^ +(?:loads|stores): (.*)$", section, re.MULTILINE)
    return list(dict.fromkeys(word for line in lines for word in re.findall(r"%\d+", line)))


def argument_words(text, name, sizes, hints):
    """What the clock is told of each parameter; `sizes` counts elements behind p0, p1, ..."""
    start = text.index(f"STITCH_KERNEL({name},")
    listed = text[text.index(")(", start) + 2 : text.index(") {", start)]
    parameters = [PARAMETER.match(p.strip()).groups() for p in listed.split(",")]
    known = len(sizes) == sum(bool(re.fullmatch(r"p\d+", p)) for *_, p in parameters)
    words = []
    for kind, star, parameter in parameters:
        kind = {"boolean": "bool", "u32": "i32"}.get(kind, kind)
        if not star:
            words.append(PHASES.get(parameter) or hints.get("s" + parameter[1:], "0"))
        elif parameter[0] == "p":
            words.append(f"{sizes[int(parameter[1:])] if known else ANY_SIZE}*{kind}")
        else:
            words.append(f"64*{kind}")
    return ",".join(words)


def list_kernels(fn, inputs, is_training, dynamic=()):
    """Our kernels for fn(*inputs) on an H200, compiled: text, launch and the clock's arguments."""
    found = []
    for i, dim in dynamic:
        torch._dynamo.mark_dynamic(inputs[i], dim)
    for graph in capture_graphs(fn, inputs, TARGET, is_training):
        kernels = graph.compile()["kernels"]
        rewritten = graph.show("rewrite")
        hints = dict(SYMBOL.findall(rewritten))
        elements = count_elements(rewritten, hints)
        sections = re.split(r"^kernel \d+.*$", graph.show("plan"), flags=re.MULTILINE)[1:]
        for i, kernel in enumerate(kernels):
            keys = ("name", "grid", "block", "shared_bytes", "registers", "predicted_us", "text")
            entry = {"kind": graph.kind, **{key: kernel[key] for key in keys}}
            names = names_of_kernel(sections[i]) if len(sections) == len(kernels) else []
            try:
                sizes = [elements[name] for name in names]
                entry["args"] = argument_words(kernel["text"], kernel["name"], sizes, hints)
            except (KeyError, ValueError, AttributeError, IndexError):
                entry["args"] = ""
            found.append(entry)
    return found


def words_of_cubin(case, args):
    """The clock's arguments for a launch of kernels.json."""
    words = []
    for argument, below in zip(args, gpu_cubins.below_of(case, args), strict=True):
        if argument["kind"] != "pointer":
            words.append(str(argument["value"]))
        elif argument["bytes"] == 0:
            words.append("null")
        else:
            kind = TYPES.get(argument["dtype"], argument["dtype"])
            count = max(1, argument["bytes"] // WIDTHS[kind])
            words.append(f"{count}*{kind}" + (f"<{below}" if kind == "i64" else ""))
    return ",".join(words)


def ask_clock(source, entry, args, block):
    """us, bound and other fields of the clock's answer, or its error.

    Of blocks that wait for each other, as many are launched as are resident.
    """
    shared = entry["shared_bytes"] or 0
    try:
        answer = _core.time_kernel(
            source, kernel=entry["kernel"], grid=entry["grid"], block=block, args=args,
            shared_bytes=shared, target=TARGET, trips=8, trace="",
        )
        answer = json.loads(answer.to_json())
        return {"clock_us": answer["us"]} | {key: answer[key] for key in ("bound", "memory_bytes")}
    except Exception as error:
        if found := RESIDENT.search(str(error)):
            entry = {**entry, "grid": [int(found[1]), 1, 1]}
            return ask_clock(source, entry, args, block)
        return {"error": str(error)[:300]}


def ask_about_cubin(folder, case, entry):
    """The same of a launch of kernels.json."""
    source = gzip.decompress((folder / entry["cubin"]).read_bytes())
    return ask_clock(source, entry, words_of_cubin(case, entry["args"]), [entry["threads"]])


def clock_cubins(folder, output, only):
    """A row for each cubin that was measured."""
    path = output / "cubins.json"
    measured = json.loads(path.read_text())["kernels"] if path.exists() else []
    times = {(r["case"], r["direction"], r["position"]): r for r in measured if "us" in r}
    rows = []
    for *place, entry in gpu_cubins.list_launches(folder, only):
        row = times.get(tuple(place))
        if row:
            said = ask_about_cubin(folder, place[0], entry)
            name = ".".join(map(str, place))
            rows.append({"of": "cubin", "case": name, "kernel": entry["kernel"],
                         "measured_us": row["us"], **said})
    return rows


def clock_own(output, only):
    """A row for each kernel of ours that was measured and whose text is known."""
    rows = []
    for path in sorted((output / "measured").glob("*.json")):
        compiled = output / "compiled" / path.name
        measured = json.loads(path.read_text()).get("rivals", {}).get("stitch", {})
        if only not in path.stem or not compiled.exists():
            continue
        known = {k["name"]: k for k in json.loads(compiled.read_text()).get("kernels", ())}
        launches = measured.get("kernels", ())
        names = [found["name"].split("(")[0] for found in launches]
        for i, (name, found) in enumerate(zip(names, launches, strict=True)):
            row = {"of": "stitch", "case": path.stem}
            row |= {"kernel": name, "measured_us": found["us"]}
            if kernel := known.get(name):
                dynamic = "STITCH_DYNAMIC_SHARED" in kernel["text"]
                shared = kernel["shared_bytes"] if dynamic else 0
                entry = {"kernel": name, "grid": found["grid"], "shared_bytes": shared}
                args, phase = kernel["args"], names[:i].count(name)
                if names.count(name) > 1:  # a launch for each phase
                    args = args.replace(ALL_PHASES, f"{phase},{phase + 1}")
                said = ask_clock(kernel["text"].encode(), entry, args, found["block"])
                rows.append({**row, "plan_us": kernel["predicted_us"], **said})
            elif name.startswith("stitch_"):
                rows.append({**row, "error": "its text is not known"})
    return rows


def summarise(rows):
    """Of rows with both times: the geometric mean of clock / measured, and the mean |error|."""
    ratios = [r["clock_us"] / r["measured_us"] for r in rows if "clock_us" in r]
    if not ratios:
        return {"kernels": 0}
    errors = [abs(x - 1) for x in ratios]
    return {
        "kernels": len(ratios),
        "geometric_mean": statistics.geometric_mean(ratios),
        "mean_error": statistics.mean(errors),
        "median_error": statistics.median(errors),
    }


def print_table(rows):
    """The rows, those that are furthest off first."""
    timed = [r for r in rows if "clock_us" in r]
    for r in sorted(timed, key=lambda r: -abs(r["clock_us"] / r["measured_us"] - 1)):
        plan = f"{r['plan_us']:9.2f}" if "plan_us" in r else " " * 9
        us, ratio = r["measured_us"], r["clock_us"] / r["measured_us"]
        times = f"{us:9.2f} {r['clock_us']:9.2f} {ratio:6.2f}"
        print(f"{r['case']:48} {times} {plan} {r['bound']:16} {r['kernel'][:40]}")
    for r in rows:
        if "clock_us" not in r:
            print(f"{r['case']:48} {r['measured_us']:9.2f} {r['error'][:90]}")


def tabulate(folder, output, only=""):
    """Prints the table and writes clock_error.json."""
    rows = clock_own(output, only)
    if (folder / "kernels.json").exists():
        rows = clock_cubins(folder, output, only) + rows
    print(f"{'case':48} {'measured':>9} {'clock':>9} {'ratio':>6} {'plan':>9} bound")
    print_table(rows)
    result = {"torch": torch.__version__, "commit": machine.commit(), "target": TARGET}
    for name in ("cubin", "stitch"):
        result[name] = summarise([r for r in rows if r["of"] == name])
        print(name, json.dumps(result[name]))
    result["rows"] = rows
    (output / "clock_error.json").write_text(json.dumps(result, indent=1) + "\n")
