"""What answers about public models say: a line of each, and the file of all under results/.

The file has totals as rows, as every other one, and a table with a line per model and mode.
"""

import json
import math

from benchmarks import machine
from benchmarks.measure import geometric_mean
from benchmarks.rows import Row
from benchmarks.run import results_directory, write_group

SLOWER = 1.1  # than the better of eager and Inductor
SLOWER_THAN_UNFUSED = 1.03  # than one kernel per op
FIRST_CALL = 0.5  # of Inductor's, processor time
PEAK = 1.05  # of Inductor's, where gradients are computed
NAME = "public_models"
TASKS = ("judge", "time")


def line_of(answer):
    if "failed" in answer:
        last = (answer.get("stderr", "").strip().splitlines() or [""])[-1]
        return f"FAILED {answer['failed']} {last[:200]}"
    if "skipped" in answer:
        return answer["skipped"]
    if "ms" in answer:
        return line_of_times(answer)
    counters = answer["counters"]
    return (
        f"{'ok' if answer['ok'] else 'WRONG'} ratio {answer.get('worst_rmse_ratio', 0):.2f} "
        f"eager {answer.get('eager_error', 0):.0e} "
        f"draws {answer.get('draws')} kinks {answer.get('kinks')} "
        f"faults {answer.get('faults_count')} left whole {answer['left_whole']} "
        f"fallbacks {counters['fallback_ops']} kernels {counters['kernels']} "
        f"calls {counters['library_calls']} {answer['seconds']:.0f} s"
    )


def line_of_times(answer):
    """Of stitch over each rival: time, first call, peak memory."""
    failed = list(answer["failed_rivals"])
    if "stitch" in failed:
        return f"FAILED {answer['failed_rivals']['stitch'][:200]}"
    row = times_of(answer)
    faster = answer["stitch_faster_than"]
    parts = [f"{rival} / {spread['median']:.2f}" for rival, spread in faster.items()]
    if "first_call" in row:
        parts += [f"first {row['first_call']:.2f}", f"peak {row['peak']:.2f}"]
    return f"{answer['ms']['stitch']['median']:.2f} ms " + ", ".join(parts + failed)


def times_of(answer):
    """Time of a call over each rival's; first call and peak memory over Inductor's."""
    first, peak = answer["first_call"], answer["peak_bytes"]
    faster = answer["stitch_faster_than"]
    row = {"over": {rival: 1 / spread["median"] for rival, spread in faster.items()}}
    if "inductor" in first:
        row["first_call"] = first["stitch"]["cpu_s"] / first["inductor"]["cpu_s"]
        row["peak"] = peak["stitch"] / max(peak["inductor"], 1)
    return row


# All answers.


def compact(answer):
    """What is kept of one answer, in a few numbers."""
    for why in ("skipped", "failed"):
        if why in answer:
            return {why: answer[why]}
    if "failed_rivals" in answer:
        failed = answer["failed_rivals"]
        row = {"failed": failed["stitch"][:200]} if "stitch" in failed else times_of(answer)
        return rounded(row | ({"failed_rivals": sorted(failed)} if failed else {}))
    row = {"ok": answer["ok"], "worst_ratio": answer["worst_rmse_ratio"]}
    row |= {name: answer.get(name, 0) for name in ("draws", "kinks", "left_whole")}
    counters = answer["counters"]
    row |= {"fallbacks": counters["fallback_ops"], "kernels": counters["kernels"]}
    return rounded(row | {"calls": counters["library_calls"]})


def rounded(x):
    """Three digits after the point; JSON has no infinity."""
    if isinstance(x, dict):
        return {name: rounded(value) for name, value in x.items()}
    if isinstance(x, float):
        return round(x, 3) if math.isfinite(x) else str(x)
    return x


def load(folder, names, modes):
    """(what, name, mode) -> answer, as far as there are any, in the order of the list."""
    found = {}
    for name in names:
        for mode in modes:
            for what in TASKS:
                path = folder / f"{what}-{name}-{mode}.json"
                if path.exists():
                    found[what, name, mode] = json.loads(path.read_text())
    return found


def rows_of_verdicts(rows, total):
    """Totals of (model, mode) -> compact verdict, of so many models and modes."""
    wrong = {f"{name} {mode}": row for (name, mode), row in rows.items() if is_wrong(row)}
    judged = [row for row in rows.values() if "ok" in row]
    return [
        Row(f"public models: judged, of {total} models and modes", len(rows), total, at_least=True),
        Row("public models: modes that a library does not offer", len(skipped(rows))),
        Row("public models: judged wrong", len(wrong), 0, detail=sorted(wrong)),
        Row("public models: judged by more draws", sum(row["draws"] > 2 for row in judged)),
        Row("public models: draws at kinks", sum(row["kinks"] for row in judged)),
        Row("public models: regions left whole", sum(row["left_whole"] for row in judged)),
        Row("public models: fallbacks", sum(row["fallbacks"] for row in judged)),
    ]


def is_wrong(row):
    return "failed" in row or row.get("ok") is False


def skipped(rows):
    return [key for key, row in rows.items() if "skipped" in row]


def rows_of_times(rows, total):
    """Totals of (model, mode) -> compact times."""
    timed = {f"{name} {mode}": row for (name, mode), row in rows.items() if "over" in row}
    over = {name: row["over"] for name, row in timed.items()}
    failed = sorted(f"{name} {mode}" for (name, mode), row in rows.items() if "failed" in row)
    beside = [x["inductor"] for x in over.values() if "inductor" in x]
    nothing = "skipped: nothing was timed"
    mean = geometric_mean(beside) if beside else nothing

    def count(found):
        return len(found) if timed else nothing

    def slower(limit, *rivals):
        """Models whose time is more than `limit` of the fastest of these rivals."""
        worst = {name: max((x[r] for r in rivals if r in x), default=0) for name, x in over.items()}
        return rounded({name: ratio for name, ratio in worst.items() if ratio > limit})

    def beyond(limit, figure, modes):
        """Models whose figure, over Inductor's, is more than `limit`."""
        return {name: row[figure] for name, row in timed.items()
                if name.endswith(modes) and row.get(figure, 0) > limit}  # fmt: skip

    slow = slower(SLOWER, "eager", "inductor")
    unfused = slower(SLOWER_THAN_UNFUSED, "kernel_per_op")
    late = beyond(FIRST_CALL, "first_call", modes="")
    large = beyond(PEAK, "peak", modes=("training", "checkpointing"))
    return [
        Row(f"public models: timed, of {total} models and modes", len(rows), total, at_least=True),
        Row("public models: not timed, as they fail", len(failed), 0, detail=failed),
        Row("public models: time over Inductor's, geometric mean", mean, detail=len(beside)),
        Row(f"public models: over {SLOWER} of the better of eager and Inductor", count(slow), 0,
            detail=slow),
        Row(f"public models: over {SLOWER_THAN_UNFUSED} of one kernel per op", count(unfused), 0,
            detail=unfused),
        Row(f"public models: first calls over {FIRST_CALL} of Inductor's", count(late), 0,
            detail=late),
        Row(f"public models: training steps whose peak memory is over {PEAK} of Inductor's",
            count(large), 0, detail=large),
    ]  # fmt: skip


def recorded(results):
    """(what, name, mode) -> compact answer, and the seconds they took, as last written here."""
    files = sorted(results.glob(f"*-{machine.machine_class()}/{NAME}.json"))
    if not files:
        return {}, 0
    kept = json.loads(files[-1].read_text())
    rows = {
        (what, row["model"], row["mode"]): row[what]
        for row in kept["table"]
        for what in TASKS
        if what in row
    }
    return rows, kept["seconds"]


def record(folder, names, modes, results):
    """Adds the answers in the folder to what was recorded last; a cut run says how many it has."""
    short, seconds = recorded(results)
    for key, answer in load(folder, names, modes).items():
        before = short.get(key)
        short[key] = compact(answer)
        seconds += answer.get("process_s", 0) if short[key] != before else 0
    by_task = {
        task: {(name, mode): row for (what, name, mode), row in short.items() if what == task}
        for task in TASKS
    }
    total = len(names) * len(modes)
    rows = rows_of_verdicts(by_task["judge"], total) + rows_of_times(by_task["time"], total)
    table = [
        {"model": name, "mode": mode, **{task: by[name, mode] for task, by in by_task.items()
                                         if (name, mode) in by}}
        for name in names
        for mode in modes
        if any((name, mode) in by for by in by_task.values())
    ]  # fmt: skip
    write_group(NAME, rows, seconds, results_directory(machine.describe(), results), table)
