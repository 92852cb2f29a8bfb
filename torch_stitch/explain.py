"""explain(): what would be launched for a function, on a device that need not be there.

The function is traced on stand-ins for its inputs.  Where it is one graph, nothing of it runs, nor
does what it does to Python's objects.  Where Python stands between graphs, they run op by op, on
copies: Python sees what it would see, and keeps what it would keep.
"""

import contextlib
import copy
import difflib
import functools
import gc
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch import config
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._pytree import tree_map

from torch_stitch import _core, backend

See = Callable[[GraphModule, str], Any]


class Planned(BaseException):
    """Ends a function of one graph before any of it runs: its writes would be of no values."""


def explain(fn: Callable[..., Any], *inputs: Any, target: str | None = None, training: bool = False,
            **options: Any) -> _core.Report:
    """Plans and compiles fn(*inputs) for `target` without running it; the inputs stay as they are.

    `target` is a row of the device table; without it, the inputs' device, for "meta" this CPU.
    `training`: with the backward pass.  Options are torch.compile's; with `clock=True` each kernel
    is timed by its code (docs/clock.md).  It needs NVRTC for a GPU's kernels, but no GPU.

    The report prints as a table; `.plan` is a dict (docs/debugging.md), times in microseconds.
    Raises ValueError (StitchError) for options that there are not, and what fn or compilers raise.
    """
    options |= {"target": target} if target else {}
    for name in difflib.get_close_matches("training", options):
        raise _core.StitchError(f"explain() has no keyword {name!r}; did you mean 'training'?")
    _core.check_options(options)

    def compile_graph(gm: GraphModule, found: str) -> _core.CompiledGraph:
        return backend.compile_parts(gm, options, found, load=False)[0]

    return _core.merge_reports(trace_graphs(compile_graph, fn, inputs, target, training), training)


def trace_graphs(see: See, fn: Any, inputs: tuple[Any, ...], target: str | None = None,
                 training: bool = False, with_values: bool = False) -> list[tuple[str, Any]]:
    """(kind, see(graph, target)) of each graph of fn(*inputs), in the order in which they come."""
    graphs, stand_ins = list[tuple[str, Any]](), StandIns(with_values)
    fn = getattr(fn, "_torchdynamo_orig_callable", getattr(fn, "_orig_mod", fn))
    stand_in, copies = stand_ins.replace(fn, inputs)

    def keep(found: str, kind: str, gm: GraphModule, example_inputs: list[Any]) -> Any:
        graphs.append((kind, see(gm, found)))
        results = [n.meta.get("val") for n in gm.graph.output_node().all_input_nodes]
        if not with_values and free_unbacked_symbols(results):
            raise RuntimeError("nothing answers for a size that depends on data but to run")
        return backend.by_dispatcher(gm, stand_ins.take)

    def plan(gm: GraphModule, example_inputs: list[Any]) -> Any:
        devices = backend.devices_of(gm, example_inputs) - {torch.device("meta")}
        found = target or backend.find_target(devices)
        return backend.trace(gm, example_inputs, found, functools.partial(keep, found))

    def explained(*copies: Any) -> Any:
        return stand_in(*copies)

    def stop(code: Any, made: Any) -> None:
        if code is explained.__code__ and not with_values:
            raise Planned

    explained.__code__ = explained.__code__.replace()  # Dynamo caches by code
    limits = dict.fromkeys(("recompile_limit", "accumulated_recompile_limit"), 1 << 30)
    gpus = range(torch.cuda.is_initialized() and torch.cuda.device_count())
    try:
        with (  # each has a backend of its own: no limit must make one run for real
            torch._dynamo.config.patch(automatic_dynamic_shapes=False, **limits),
            config.patch(force_non_lazy_backward_lowering=True),  # no gradient is asked for
            torch.set_grad_enabled(training),
            torch.random.fork_rng(gpus),
            torch._dynamo.convert_frame.register_bytecode_hook(stop),
            contextlib.suppress(Planned),
        ):
            torch.compile(explained, backend=plan, fullgraph=not with_values)(*copies)
    except RuntimeError:  # no single graph, or what is said again
        if with_values:
            raise
        return trace_graphs(see, fn, inputs, target, training, with_values=True)
    return graphs


def is_plain(x: Any) -> bool:
    return type(x) in (torch.Tensor, torch.nn.Parameter) and torch._C._has_storage(x)


class StandIns:
    """Copies that tracing may write to: tensors in layout alone, or with their values."""

    def __init__(self, with_values: bool) -> None:
        self.with_values, self.storages, self.memo = with_values, dict[int, Any](), dict[int, Any]()
        self.given = [*filter(is_plain, gc.get_objects())] if with_values else []
        self.theirs = {x.untyped_storage()._cdata for x in self.given}

    def of(self, x: Any) -> Any:
        if not is_plain(x) or id(x) in self.memo:
            return self.memo.get(id(x), x)
        storage = x.untyped_storage()
        if storage._cdata not in self.storages:
            memory = torch.UntypedStorage(storage.nbytes(), device=x.device)
            self.storages[storage._cdata] = memory.copy_(storage) if self.with_values else memory
        twin = torch.empty(0, dtype=x.dtype, device=x.device)
        twin.set_(self.storages[storage._cdata], x.storage_offset(), x.shape, x.stride())
        twin = self.memo[id(x)] = torch.Tensor._make_subclass(type(x), twin, x.requires_grad)
        twin.__dict__.update(x.__dict__)
        self.given.append(x)  # its id is taken
        return twin

    def replace(self, fn: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        inputs = tree_map(self.of, inputs)
        if isinstance(fn, torch.nn.Module):
            tree_map(self.of, [*fn.parameters(), *fn.buffers()])
            fn = copy.deepcopy(fn, self.memo)
        return fn, inputs

    def take(self, args: list[Any]) -> list[Any]:
        """The arguments of a graph, with twins of what was there before: globals of the caller."""
        held, args[:] = list(args), []
        memory = [is_plain(x) and x.untyped_storage()._cdata for x in held]
        return [self.of(x) if place in self.theirs else x for x, place in zip(held, memory)]
