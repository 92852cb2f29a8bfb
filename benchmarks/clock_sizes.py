"""The micro suite by the clock at sizes that suit a GPU less: odd ones, and known only when run.

What counts is what of a kernel's time its compulsory bytes would take, over the same at the sizes
of benchmarks.cases.
"""

from functools import partial

import torch
from torch.utils._pytree import tree_leaves

from benchmarks import measure
from benchmarks.cases import CASES
from benchmarks.clock_rows import WITHOUT_LIMIT, failures, good, time_all, time_plan, time_static
from benchmarks.rows import Row

LIMIT = 0.8
COUNTS = ("tensors", "groups")  # sizes that are no extent of an input


def is_accepted(case, sizes):
    try:
        with torch.device("meta"):
            fn, inputs = case.build(case.timing_dtype, **sizes)
            fn(*inputs)
    except (RuntimeError, ValueError):
        return False
    return True


def one_less(case):
    """The sizes of `timing`, each extent less one where eager takes that, and those that stay."""
    sizes, kept = dict(case.timing), []
    for name in [name for name in sizes if name not in COUNTS]:
        fewer = sizes | {name: sizes[name] - 1}
        if sizes[name] > 1 and is_accepted(case, fewer):
            sizes = fewer
        else:
            kept.append(name)
    return sizes, kept


def mark_dynamic(inputs):
    for x in tree_leaves(inputs):
        for dim in range(x.dim()):
            torch._dynamo.maybe_mark_dynamic(x, dim)


def with_dynamic_sizes(case):
    fn, inputs = case.timed()
    mark_dynamic(inputs)
    return fn, inputs


def time_one_less(name):
    case = CASES[name]
    sizes, kept = one_less(case)
    plan = time_plan(*case.build(case.timing_dtype, **sizes))
    return {"sizes": sizes, "kept": kept, **plan}


def time_dynamic(name):
    compulsory = time_static(name)["bytes_compulsory"]  # a plan that is cut counts some twice
    return time_plan(*with_dynamic_sizes(CASES[name])) | {"bytes_compulsory": compulsory}


# way -> (how it is timed, which extents stay as they are)
WAYS = {
    "each extent less one": (time_one_less, "extents of one, and where eager refuses others"),
    "all sizes dynamic": (
        time_dynamic,
        "extents of one, and those that the case's code makes numbers of, which Dynamo then fixes: "
        "a layer norm's shape, an expand's, classes of cross_entropy, places of an embedding",
    ),
}


def clock_sizes(request):
    """Rates of compulsory bytes over those at the sizes that the suite is timed at."""
    names = [name for name in request.cases if name not in WITHOUT_LIMIT]
    static = good(time_all({name: partial(time_static, name) for name in names}))
    for way, (time_case, stay) in WAYS.items():
        what = f"micro suite by the clock, {way}"
        found = time_all({name: partial(time_case, name) for name in static})
        yield failures(what, found)
        ratios = {}
        for name, plan in good(found).items():
            each = [p["bytes_compulsory"] / p["us"] for p in (plan, static[name])]
            ratios[name] = plan["over_static"] = round(each[0] / each[1], 3)
            plan["static_us"] = static[name]["us"]
        mean = round(measure.geometric_mean(list(ratios.values())), 3)
        detail = {"extents that stay": stay, "cases": found}
        what += ", over static"
        name = f"{what}, geometric mean of {len(ratios)}"
        yield Row(name, mean, LIMIT, at_least=True, detail=detail)
        if ratios:
            worst = min(ratios, key=ratios.get)
            below = {name: ratio for name, ratio in ratios.items() if ratio < LIMIT}
            yield Row(f"{what}, worst ({worst})", ratios[worst], LIMIT, at_least=True, detail=below)


GROUPS = {"clock_sizes": clock_sizes}
