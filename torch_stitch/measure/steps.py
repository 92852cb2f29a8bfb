"""What is timed: one call of a function, or a forward and a backward pass."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

Outcome = list[torch.Tensor | None]


def tensors_of(results: Any) -> list[torch.Tensor]:
    """Classes of a library's own results are no nodes of a tree to torch everywhere."""
    parts = results.values() if isinstance(results, dict) else results
    if isinstance(results, dict | list | tuple):
        return [x for part in parts for x in tensors_of(part)]
    return [results] if isinstance(results, torch.Tensor) else []


def loss_of(results: Any) -> torch.Tensor:
    """One number is a loss; of anything else, the mean of squares of each tensor."""
    found = [x for x in tensors_of(results) if x.requires_grad]
    if len(found) == 1 and found[0].dim() == 0:
        return found[0]
    return sum(x.square().mean() for x in found)


def buffers_of(fn: Any) -> list[torch.Tensor]:
    return list(fn.buffers()) if isinstance(fn, torch.nn.Module) else []


def parameters_of(fn: Any, inputs: Any) -> list[torch.Tensor]:
    """What a backward pass gives gradients to."""
    parameters = list(fn.parameters()) if isinstance(fn, torch.nn.Module) else []
    given = tensors_of(tree_leaves(inputs))
    return [x for x in parameters + given if x.requires_grad and x.is_leaf]


def run_step(fn: Any, call: Any, inputs: Any, training: bool) -> Any:
    """call(*inputs), which runs fn, and its backward pass; what the call returns."""
    with torch.set_grad_enabled(training):
        if not training:
            return call(*inputs)
        for x in parameters_of(fn, inputs):
            x.grad = None
        results = call(*inputs)
        loss_of(results).backward()
        return results


def outcome_of(fn: Any, call: Any, inputs: Any, training: bool) -> Outcome:
    """What a step leaves: results, inputs, which it may have written to, gradients, buffers."""
    results = run_step(fn, call, inputs, training)
    gradients = [x.grad for x in parameters_of(fn, inputs)] if training else []
    found = [*tensors_of(results), *tensors_of(tree_leaves(inputs)), *gradients, *buffers_of(fn)]
    return [None if x is None else x.detach().clone() for x in found]
