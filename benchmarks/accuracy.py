"""Whether a result is as good as eager's, both measured against fp64.

The root of the mean squared error may be twice eager's, and the worst element may be off by four
times eager's worst or by the textbook bound of a sum of `terms` roundings, whichever is larger.
Where eager is nearly exact (some of its sums are carried in a wider type), an error of one unit
roundoff is what results are measured by.  Of fp64 results only the worst element is judged.  What
is infinite or NaN in both is as good as eager's, whatever wider numbers would hold; where eager
alone is, because it rounds more often, what overflows as the exact number does is right.
"""

import torch
from torch.utils._pytree import tree_leaves

from torch_stitch.measure.reference import errors, widen

RMSE_RATIO = 2.0
WORST_RATIO = 4.0
ROUNDINGS = 16  # of an element beside its sum: the pointwise ops around it


def in_fp64(fn, inputs):
    """fn(*inputs) with every float widened."""
    fn, inputs = widen(fn, inputs)
    return fn(*inputs)


def tensors_after(fn, inputs):
    """What a call leaves: the tensors of its results, and its inputs, which it may have changed."""
    return [x for x in tree_leaves((fn(*inputs), inputs)) if isinstance(x, torch.Tensor)]


def roundings(exact, dtype, terms):
    """The rmse of one unit roundoff of each element, and the bound on one element's error."""
    if not dtype.is_floating_point:
        return 0.0, 1.0  # a tie may round either way
    size = exact.double().nan_to_num(0, 0, 0).abs()
    unit = torch.finfo(dtype).eps / 2
    # Sums are carried in fp32 at least, whatever the result is rounded to.
    gamma = (terms + ROUNDINGS) * torch.finfo(torch.promote_types(dtype, torch.float32)).eps / 2
    bound = (gamma / (1 - min(gamma, 0.5)) + unit) * size.max().item()
    return unit * size.square().mean().sqrt().item(), bound


def judge_tensor(result, eager, exact, terms):
    if (result.dtype, result.shape, result.stride()) != (eager.dtype, eager.shape, eager.stride()):
        return {"ok": False, "why": "dtype, shape or strides differ from eager's"}
    if not result.numel() or result.equal(eager):
        return {"ok": True, "rmse_ratio": 1.0, "worst_ratio": 1.0}
    agrees = result.eq(eager) | (result.isnan() & eager.isnan()) | result.eq(exact.to(result.dtype))
    overflowed = ~eager.isfinite() & agrees
    exact, eager = (torch.where(overflowed, result, x).to(x) for x in (exact.double(), eager))
    rmse, worst = errors(result, exact)
    eager_rmse, eager_worst = errors(eager, exact)
    typical, bound = roundings(exact, result.dtype, terms)
    tiny = torch.finfo(torch.float64).tiny
    is_judged = result.dtype != torch.float64
    rmse_ratio = rmse / max(eager_rmse, typical, tiny) if is_judged else 1.0
    worst_ratio = worst / max(eager_worst, bound / WORST_RATIO, tiny)
    return {
        "ok": rmse_ratio <= RMSE_RATIO and worst_ratio <= WORST_RATIO,
        "rmse": rmse,
        "worst": worst,
        "rmse_ratio": rmse_ratio,
        "worst_ratio": worst_ratio,
    }


def judge(results, eager, exact, terms):
    """The worst of what judge_tensor says of each output; `ok` only when all are."""
    columns = [tree_leaves(x) for x in (results, eager, exact)]
    rows = [
        judge_tensor(*row, terms) | {"output": i}
        for i, row in enumerate(zip(*columns, strict=True))
    ]
    failed = [row for row in rows if not row["ok"]]
    return failed[0] if failed else max(rows, key=lambda row: row["rmse_ratio"])
