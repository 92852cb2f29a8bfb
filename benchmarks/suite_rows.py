"""Figures of the micro suite, all named subgraphs, beside times: plans, and runs on ptxsim."""

import json

import torch_stitch
from benchmarks import measure
from benchmarks.cases import CASES, ONE_STITCHED_KERNEL
from benchmarks.child import call_child
from benchmarks.rows import PLANNED_FOR, Row, kernels_of, skip_without_nvrtc
from torch_stitch.measure.backends import own_copy

POLICIES = ("auto", "astitch", "fusionstitching2020", "none")
WITHOUT_LIMIT = ("segment_softmax_unsorted",)  # what it gathers lies anywhere


def plan_of(fn, inputs, policy="auto"):
    report = torch_stitch.explain(fn, *inputs, target=PLANNED_FOR, policy=policy)
    return json.loads(report.to_json())


def describe(plan):
    return {
        "kernels": kernels_of(plan),
        "predicted_us": sum(kernel["predicted_us"] for kernel in plan["kernels"]),
        "bytes_ratio": plan["bytes_planned"] / plan["bytes_compulsory"],
        "spill_bytes": sum(kernel["spill_bytes"] for kernel in plan["kernels"]),
        "stack_bytes": sum(kernel["stack_bytes"] for kernel in plan["kernels"]),
        "cuts": plan["cuts"],
    }


def plan_suite(names, make, policies):
    """name -> policy -> what the plan amounts to; the subgraphs that could not be planned."""
    details, failed = {}, {}
    for name in names:
        try:
            fn, inputs = make(CASES[name])
            details[name] = {
                policy: describe(plan_of(own_copy(fn), inputs, policy))
                for policy in policies
            }
        except Exception as error:
            failed[name] = str(error)[-2000:]
    return details, failed


def suite_bytes(request):
    """Bytes that plans move over those they must, where all tensors are about 16 MB."""
    details, failed = plan_suite(request.cases, lambda case: case.of_medium_size(), ("auto",))
    yield Row("micro suite at 16 MB, subgraphs not planned", len(failed), 0, detail=failed)
    found = {name: plans["auto"] for name, plans in details.items()}
    ratios = {
        name: plan["bytes_ratio"] for name, plan in found.items() if name not in WITHOUT_LIMIT
    }
    what = f"bytes_planned / bytes_compulsory, micro suite at 16 MB for {PLANNED_FOR}"
    mean = measure.geometric_mean(list(ratios.values()))
    yield Row(f"{what}, geometric mean", round(mean, 3), 1.05, detail=found)
    if ratios:
        worst = max(ratios, key=ratios.get)
        yield Row(f"{what}, worst ({worst})", round(ratios[worst], 3), 1.3)
    for key in ("spill_bytes", "stack_bytes"):
        total = sum(plan[key] for plan in found.values())
        yield Row(f"{key} of the kernels of the micro suite at 16 MB", total, 0)


def suite_kernels(request):
    """Launches of the micro suite at its published sizes under each policy."""
    details, failed = plan_suite(request.cases, lambda case: case.planned(), POLICIES)
    yield Row("micro suite, subgraphs not planned", len(failed), 0, detail=failed)
    for policy in POLICIES:
        total = sum(plans[policy]["kernels"] for plans in details.values())
        name = f"micro suite, kernels of {len(details)} subgraphs under {policy}"
        yield Row(name, total, detail=details if policy == "auto" else None)
    least_us = {
        name: min(plan["predicted_us"] for plan in plans.values())
        for name, plans in details.items()
    }
    beaten = {
        name: plans
        for name, plans in details.items()
        if least_us[name] < 0.999 * plans["auto"]["predicted_us"]
    }
    yield Row("micro suite, subgraphs where another policy is predicted faster than auto",
              len(beaten), 0, detail=beaten)  # fmt: skip
    asked = [name for name in ONE_STITCHED_KERNEL if name in details]
    for policy, limit in (("astitch", 0), ("auto", None)):
        more = {name: details[name][policy] for name in asked}
        more = {name: plan for name, plan in more.items() if plan["kernels"] > 1}
        name = f"of {len(asked)} subgraphs that one kernel covers, more than one under {policy}"
        yield Row(name, len(more), limit, detail=more)


def suite_accesses(request):
    """The share of bytes that accesses of 16 bytes move, as ptxsim counts them."""
    if reason := skip_without_nvrtc("micro suite, share of 16-byte accesses"):
        yield reason
        return
    names = [
        name
        for name in request.cases
        if not (CASES[name].is_irregular or CASES[name].is_ragged)
    ]
    answers = call_child("count_bytes", names=names)
    moved = {
        name: {int(width): count for width, count in widths.items()}
        for name, widths in answers.items()
    }
    shares = {name: wide_share([counts]) for name, counts in moved.items()}
    what = "share of bytes moved by 16-byte accesses, micro suite at 16 MB"
    detail = {name: {"share": shares[name], "bytes": moved[name]} for name in moved}
    share = round(wide_share(moved.values()), 4)
    yield Row(f"{what}, ptxsim", share, 0.95, at_least=True, detail=detail)
    if shares:
        worst = min(shares, key=shares.get)
        yield Row(f"{what}, worst ({worst})", round(shares[worst], 4))


def wide_share(counts):
    """counts: of several kernels, bytes by the width of the access."""
    total = sum(sum(widths.values()) for widths in counts)
    wide = sum(count for widths in counts for width, count in widths.items() if width >= 16)
    return wide / total if total else 0.0


GROUPS = {group.__name__: group for group in (suite_bytes, suite_kernels, suite_accesses)}
