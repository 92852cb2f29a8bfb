"""Whether a result is as good as eager's, both measured against fp64.

The root of the mean squared error may be twice eager's, and the worst element may be off by four
times eager's worst or by the textbook bound of a sum of `terms` roundings, whichever is larger.
Where eager is exact to the last bit, the rounding of the result itself is what it is measured by.
"""

import copy

import torch
from torch.utils._pytree import tree_leaves, tree_map

RMSE_RATIO = 2.0
WORST_RATIO = 4.0
ROUNDINGS = 16  # of an element beside its sum: the pointwise ops around it


def in_fp64(fn, inputs):
    """fn(*inputs) with every float widened; a module is copied for it."""

    def widen(x):
        is_float = isinstance(x, torch.Tensor) and x.is_floating_point()
        return x.double() if is_float else x

    fn = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
    return fn(*tree_map(widen, inputs))


def errors(result, exact):
    """(rmse, worst, where both are finite); infinite and NaN elements must be the same ones."""
    result, exact = result.double(), exact.double()
    finite = exact.isfinite() & result.isfinite()
    same = torch.where(finite, 0.0, result).eq(torch.where(finite, 0.0, exact))
    if not bool((same | (result.isnan() & exact.isnan())).all()):
        return float("inf"), float("inf")
    gap = torch.where(finite, result - exact, 0.0).abs()
    return gap.square().mean().sqrt().item(), gap.max().item() if gap.numel() else 0.0


def unit_roundoff(dtype):
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else 0.5


def judge_tensor(result, eager, exact, terms):
    if (result.dtype, result.shape, result.stride()) != (eager.dtype, eager.shape, eager.stride()):
        return {"ok": False, "why": "dtype, shape or strides differ from eager's"}
    if not result.numel() or result.equal(eager):
        return {"ok": True, "rmse_ratio": 1.0, "worst_ratio": 1.0}
    rmse, worst = errors(result, exact)
    eager_rmse, eager_worst = errors(eager, exact)
    size = exact.double().nan_to_num(0, 0, 0).abs()
    unit = unit_roundoff(result.dtype)
    scale = (size.square().mean().sqrt().item(), size.max().item())
    scale = scale if result.is_floating_point() else (1.0, 2.0)
    wide_unit = unit_roundoff(torch.promote_types(result.dtype, torch.float32))
    gamma = (terms + ROUNDINGS) * (wide_unit if result.is_floating_point() else unit)
    # Inner sums are fp32 whatever the result is rounded to.
    bound = (gamma / (1 - min(gamma, 0.5)) + unit) * scale[1]
    ok = rmse <= RMSE_RATIO * max(eager_rmse, unit / 2 * scale[0])
    ok = ok and worst <= max(WORST_RATIO * eager_worst, bound)
    tiny = torch.finfo(torch.float64).tiny
    return {
        "ok": ok,
        "rmse": rmse,
        "worst": worst,
        "rmse_ratio": rmse / max(eager_rmse, unit / 2 * scale[0], tiny),
        "worst_ratio": worst / max(eager_worst, bound / WORST_RATIO, tiny),
    }


def judge(results, eager, exact, terms):
    """The worst of what judge_tensor says of each output; `ok` only when all are."""
    columns = [tree_leaves(x) for x in (results, eager, exact)]
    rows = [judge_tensor(*row, terms) for row in zip(*columns, strict=True)]
    failed = [row for row in rows if not row["ok"]]
    return failed[0] if failed else max(rows, key=lambda row: row["rmse_ratio"])
