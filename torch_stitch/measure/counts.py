"""Launches and bytes of one step: of eager's ops, of Inductor's code, of stitch's plan.

Bytes are counted once for each distinct tensor of a launch, library calls included.
"""

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch._dynamo.utils import counters
from torch._inductor import compile_fx, metrics
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_stitch.explain import explain


class Counts(NamedTuple):
    launches: int | None = None
    moved_bytes: int | None = None


class CountOps(TorchDispatchMode):
    """Ops that move data: neither views, nor what only allocates."""

    launches = moved_bytes = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = op(*args, **(kwargs or {}))
        read = dense_tensors((args, kwargs))
        written = dense_tensors(results)
        places = {x.untyped_storage()._cdata for x in read}
        is_view = all(x.untyped_storage()._cdata in places for x in written)
        allocates = op._schema.name.split("::")[1].startswith(("empty", "new_empty"))
        if written and not allocates and (op._schema.is_mutable or not is_view):
            self.launches += 1
            distinct = {id(x): x for x in read + written}.values()
            moved = (min(x.numel() * x.itemsize, x.untyped_storage().nbytes()) for x in distinct)
            self.moved_bytes += sum(moved)
        return results


def dense_tensors(tree: Any) -> list[torch.Tensor]:
    tensors = [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
    return [x for x in tensors if x.layout == torch.strided]


def count_eager(step: Callable[[], Any]) -> Counts:
    with CountOps() as counted:
        step()
    return Counts(counted.launches, counted.moved_bytes)


@contextlib.contextmanager
def count_inductor() -> Iterator[list[Counts]]:
    """Yields a list to which the counts of what Inductor compiled within are added at its end."""
    calls, found = list[str](), list[Counts]()
    generate = PythonWrapperCodegen.generate_kernel_call

    def count(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return generate(self, name, *args, **kwargs)

    metrics.reset()
    library_calls = counters["inductor"]["extern_calls"]
    log = logging.Logger("which is on", logging.INFO)  # bytes are counted where it is
    with (
        patch.object(compile_fx, "inductor_metrics_log", log),
        patch.object(PythonWrapperCodegen, "generate_kernel_call", count),
    ):
        yield found
    library_calls = counters["inductor"]["extern_calls"] - library_calls
    found.append(Counts(len(calls) + library_calls, metrics.num_bytes_accessed))


def count_stitch(fn: Any, inputs: tuple[Any, ...], training: bool, options: Any) -> Counts:
    """From the plan for the inputs' device, as explain() makes it."""
    known = {name: options[name] for name in ("policy", "attention", "target") if name in options}
    plan = json.loads(explain(fn, *inputs, training=training, **known).to_json())
    passes = [plan["forward"], plan["backward"]] if training else [plan]
    return Counts(*(sum(part[key] for part in passes) for key in ("launches", "bytes_touched")))
