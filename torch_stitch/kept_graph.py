"""What torch's cache of AOT graphs holds of ours: a graph of the core, and rows of calls.

A process that finds a graph there neither traces nor imports it; keys and guards are torch's.
"""

import copyreg
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
from torch._inductor.output_code import OutputCode
from torch.fx import GraphModule

from torch_stitch import _core

FEWEST_OPS = 100  # Inductor's lowerings are imported for a key, 1.2 s: as long as tracing takes
FLAGS = "force_autograd_cache bundled_autograd_cache force_non_lazy_backward_lowering".split()


class KeptGraph(OutputCode):
    """Callable like any AOT graph.  parts: what the core compiled it from, nothing if not kept;
    capture: what it is called through (cuda_graphs.choose_capture), or nothing."""

    def __init__(self, compiled: Callable[..., Any], parts: tuple[Any, ...] | None = None,
                 capture: Callable[..., Any] | None = None) -> None:
        self.parts, self.capture = parts, capture
        self.run = capture(compiled) if capture else compiled
        self._boxed_call = True  # of the object: wrappers take over what that has

    def __call__(self, args: list[Any]) -> Any:
        return self.run(args)

    def prepare_for_serialization(self) -> None:
        """Of a copy.  Tensors are not kept, nor callables that are no ops."""
        _, calls, *_ = self.parts or (None, _core.CallTable())
        foreign = [op for _, op, *_ in calls.given if not isinstance(op, torch._ops.OpOverload)]
        if not self.parts or foreign or any(isinstance(x, torch.Tensor) for x in calls.extras):
            raise BypassAOTAutogradCache("torch_stitch: a part of this graph cannot be kept")
        del self.run

    def post_compile(self, *_: Any) -> None:
        KeptGraph.__init__(self, _core.compile(*self.parts or ()), self.parts, self.capture)


copyreg.pickle(torch._ops.OpOverload, lambda op: (pkgutil.resolve_name, (f"torch:ops.{op}",)))


def keep_graphs(gm: GraphModule, cache: str, *identity: Any) -> AbstractContextManager[Any]:
    """While this lasts, tracing `gm` asks torch's cache first; `identity` is a part of the key."""
    if cache in ("", "off") or len(gm.graph.nodes) < FEWEST_OPS:
        return nullcontext()
    gm.torch_stitch = [package_files(), *identity]  # the key holds what a module has
    return torch._functorch.config.patch(dict.fromkeys(FLAGS, True))


def package_files() -> list[tuple[str, int, int]]:
    """Another build of this package is another backend."""
    files = [*Path(__file__).parent.glob("*.py"), Path(_core.__file__)]
    return sorted((x.name, x.stat().st_size, x.stat().st_mtime_ns) for x in files)
