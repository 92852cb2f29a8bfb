"""Whether a compiled model is as good as eager by rule R10, over draws of its weights.

Eager and the fp64 reference run without gradient checkpointing: eager updates the statistics of a
batch norm again when it computes a block again, a compiled graph does not.  What two draws find
wrong is judged by twelve, and then by 48, as the rounding of a few numbers that all gradients
depend on may be luck: a relu whose sign it decides makes most of our gradients four times less
exact, or most of eager's, in a third of the draws each (levit).  A draw where eager itself is far
off once its inputs move by one unit in the last place lies at a kink and tells nothing: it is left
out.
"""

import contextlib
import math
import statistics
import time
import warnings
from typing import NamedTuple

import torch
from torch.utils._pytree import tree_map

from benchmarks import accuracy
from benchmarks.workloads.training import named_step, other_weights
from torch_stitch.measure.reference import Exactly, copy_tensors, errors, widen

DRAWS = (2, 12, 48)
KINK_RATIO = 8.0
TERMS = 512  # of the longest sums but a few
KEPT_FAULTS = 8


class Model(NamedTuple):
    """A module, its like without gradient checkpointing (or itself), inputs and mode."""

    module: torch.nn.Module
    plain: torch.nn.Module
    inputs: tuple
    mode: str


class Draw(NamedTuple):
    """Of one draw of weights, by name, what each leaves; a gradient may be None."""

    ours: dict
    eager: dict
    exact: dict


def run_draw(module, call, model, draw, around=contextlib.nullcontext):
    """What a call with the weights of this draw leaves, by name; the module stays as it is."""
    state = {k: v.clone() for k, v in module.state_dict().items()}
    module.load_state_dict(other_weights(module, draw))
    torch.manual_seed(draw)
    with around():
        inputs = copy_tensors(model.inputs)
        if model.mode == "inference":
            with torch.no_grad():
                left = {f"result {i}": x.clone() for i, x in enumerate(call(*inputs))}
        else:
            left = named_step(module, call, inputs)
    module.load_state_dict(state)
    return left


class Reference:
    """Eager and fp64 results of draws; `no_fp64` says why eager stands for the exact results."""

    def __init__(self, model):
        self.model = model
        exact_module, exact_inputs = widen(model.plain, model.inputs)
        self.widened = model._replace(plain=exact_module, inputs=exact_inputs)
        self.nudged = model._replace(inputs=nudge(model.inputs))
        self.no_fp64 = None

    def eager(self, draw):
        return run_draw(self.model.plain, self.model.plain, self.model, draw)

    def exact(self, draw, eager):
        """Eager's own where fp64 failed."""
        if self.no_fp64 is None:
            module = self.widened.plain
            try:
                return run_draw(module, module, self.widened, draw, Exactly)
            except (RuntimeError, NotImplementedError) as error:
                self.no_fp64 = str(error)[:300]
        return eager

    def is_kink(self, draw, eager, exact):
        if self.no_fp64 or self.nudged.inputs is None:
            return False
        nudged = run_draw(self.model.plain, self.model.plain, self.nudged, draw)
        return is_kink(eager, nudged, exact)


def nudge(inputs):
    """Each float one unit in the last place up; None where there are none."""
    found = []

    def up(x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        found.append(x)
        return torch.nextafter(x, torch.full_like(x, math.inf))

    nudged = tree_map(up, inputs)
    return nudged if found else None


def is_kink(eager, nudged, exact):
    """Whether moved inputs multiply eager's own error in most of its results."""
    ratios = [
        accuracy.judge_tensor(nudged[name], x, exact[name], TERMS).get("rmse_ratio", math.inf)
        for name, x in eager.items()
        if all(isinstance(of.get(name), torch.Tensor) for of in (eager, nudged, exact))
        and x.is_floating_point()
    ]
    return bool(ratios) and statistics.median(ratios) > KINK_RATIO


def judge(model, backend="stitch"):
    import torch_stitch

    reference, kept, said, judged = Reference(model), [], [], None
    options = {"fallback_random": True} if backend == "stitch" else None
    torch_stitch.reset_counters()
    call = torch.compile(model.module, backend=backend, options=options, dynamic=False)
    seconds, counters, outputs = 0.0, None, 0
    for first, end in zip((0, *DRAWS), DRAWS):
        for draw in range(first, end):
            eager = reference.eager(draw)
            exact = reference.exact(draw, eager)
            if reference.is_kink(draw, eager, exact):
                continue
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ours = run_draw(model.module, call, model, draw)
            seconds += time.perf_counter() - start
            said += [str(w.message) for w in caught if "torch_stitch" in str(w.message)]
            kept.append(only(judged, Draw(ours, eager, exact)))
        if kept and counters is None:
            counters = torch_stitch.counters()
        verdict = judge_draws(kept, end, reference.no_fp64)
        outputs = outputs or verdict["outputs"]
        if verdict["ok"]:
            break
        judged = {fault["output"] for fault in verdict["faults"] if "output" in fault} or judged
        kept = [only(judged, draw) for draw in kept]
    verdict |= {"outputs": outputs, "faults": verdict["faults"][:KEPT_FAULTS]}
    return {
        "seconds": seconds,
        "counters": counters or torch_stitch.counters(),
        "left_whole": sum("runs without stitching" in text for text in said),
        "said": said,
        "no_fp64": reference.no_fp64,
        **verdict,
    }


def only(names, draw):
    """What a draw leaves of these names; all where there are none."""
    if names is None:
        return draw
    return Draw(*({name: of[name] for name in names if name in of} for of in draw))


def judge_draws(kept, draws, no_fp64=None):
    """The verdict on the draws that are kept of so many; too few of them are no verdict for us."""
    columns, faults = align(kept)
    verdict = describe_faults(columns, faults, no_fp64)
    kinks = draws - len(kept)
    if 2 * kinks > draws:
        verdict["ok"] = False
        verdict["faults"].insert(0, {"why": f"{kinks} of {draws} draws lie at a kink"})
    return verdict | {"draws": draws, "kinks": kinks}


def align(kept):
    """name -> rows of ours, eager, exact, one per draw, and what is there on one side alone.

    Where a result does not depend on a parameter, eager's gradient may be None and that of a
    compiled graph zeros.
    """
    columns, faults = {}, []
    for at, (ours, eager, exact) in enumerate(kept):
        for name in {**eager, **ours}:
            row = [of.get(name) for of in (ours, eager, exact)]
            if why := lonely(name, row, eager):
                faults.append({"output": name, "draw": at, "why": why})
            elif row[0] is not None and row[1] is not None:
                if row[2] is None:
                    row[2] = torch.zeros_like(row[1])
                columns.setdefault(name, []).append(row)
    return columns, faults


def lonely(name, row, eager):
    """Why these tensors of one name cannot be compared, if they cannot."""
    mine, theirs, true = row
    if theirs is None and mine is not None:
        if name not in eager:
            return "eager has none"
        return "not zeros, eager has none" if mine.any() else None
    if mine is None and theirs is not None:
        return "eager has one, ours is missing"
    if true is None and theirs is not None and theirs.any():
        return "not zeros, in fp64 there is none"
    return None


def describe_faults(columns, faults, no_fp64):
    """Every result that R10 refuses; how exact eager itself is, in units of the result's size.

    Without an exact result, the distance from eager is held against the textbook bound alone.
    Draws are stacked one result at a time: of all together a copy would not fit.
    """
    ratios, eager_errors = [math.inf] if faults else [], [0.0]
    for name, rows in columns.items():
        mine, theirs, true = (torch.stack(column) for column in zip(*rows, strict=True))
        if not theirs.is_floating_point():
            if not (mine.dtype == theirs.dtype and mine.equal(theirs)):
                faults.append({"output": name, "shape": list(theirs.shape), "why": "not equal"})
            continue
        row = accuracy.judge_tensor(mine, theirs, true, TERMS)
        if no_fp64 and "rmse_ratio" in row:
            row |= {"rmse_ratio": 0.0, "ok": row["worst_ratio"] <= 1}
        ratios.append(row.get("rmse_ratio", math.inf))
        size = true.double().square().mean().sqrt().item()
        eager_errors.append(errors(theirs, true)[0] / max(size, 1e-30))
        if not row["ok"]:
            layouts = str([(x.dtype, tuple(x.shape), x.stride()) for x in (mine, theirs)])
            faults.append({
                "output": name, "shape": list(theirs.shape), "size": size,
                "eager_error": eager_errors[-1], **row,
                **({"layouts": layouts} if "why" in row else {}),
            })  # fmt: skip
    return {
        "ok": not faults,
        "faults": faults,
        "faults_count": len(faults),
        "worst_rmse_ratio": max(ratios, default=0.0),
        "eager_error": statistics.median(eager_errors),
        "outputs": len(columns),
    }
