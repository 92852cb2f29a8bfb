"""What a function answers in fp64, and how far other results lie from that."""

import copy
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only


def copy_tensors(inputs: Any) -> Any:
    """Leaves of their own, which need gradients where the given ones do."""
    return tree_map_only(
        torch.Tensor, lambda x: x.detach().clone().requires_grad_(x.requires_grad), inputs
    )


def widen(fn: Any, inputs: Any) -> tuple[Any, Any]:
    """fn and inputs with every float in fp64; a module is copied for it."""

    def double(x: torch.Tensor) -> torch.Tensor:
        return x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x

    fn = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
    return fn, tree_map_only(torch.Tensor, double, inputs)


class Exactly(TorchFunctionMode):
    """Within it, what is made without a type is fp64, and so is what is asked for as fp32."""

    def __enter__(self) -> Any:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        torch.set_default_dtype(self.before)

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.float:
            function = torch.Tensor.double

        def widen(x: Any) -> Any:
            return torch.float64 if x is torch.float32 else x

        return function(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def errors(result: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """(rmse, worst, where both are finite); infinite and NaN elements must be the same ones."""
    result, exact = result.double(), exact.double()
    finite = exact.isfinite() & result.isfinite()
    same = torch.where(finite, 0.0, result).eq(torch.where(finite, 0.0, exact))
    if not bool((same | (result.isnan() & exact.isnan())).all()):
        return float("inf"), float("inf")
    gap = torch.where(finite, result - exact, 0.0).abs()
    return gap.square().mean().sqrt().item(), gap.max().item() if gap.numel() else 0.0


def largest_errors(results: Any, exact: Any) -> tuple[float, ...]:
    """The largest rmse and the worst element of all tensors; no gradient is one of zeros."""
    pairs = [
        (torch.zeros_like(y) if x is None else x, torch.zeros_like(x) if y is None else y)
        for x, y in zip(results, exact, strict=True)
        if x is not None or y is not None
    ]
    found = [errors(x, y) for x, y in pairs if x.numel()]
    return tuple(map(max, zip((0.0, 0.0), *found)))
