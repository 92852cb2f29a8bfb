"""The callable behind torch.compile(backend="stitch"): trace, import, compile, wrap, fall back.

Each AOT graph (inference, forward, backward) becomes one compiled program.  Ops of kernels that
fail become library calls of it; a graph that fails as a whole runs by the FX interpreter.  Either
is one warning, counted in `fallback_ops`, and an error under strict=True.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config, partitioners
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph
from torch._inductor.cudagraph_utils import BoxedDeviceIndex
from torch.fx import GraphModule, Node

from torch_stitch import _core
from torch_stitch.decompositions import decompositions
from torch_stitch.fx_calls import tensors_of
from torch_stitch.fx_import import FOLDERS, Importer, find_frame, find_location, import_graph
from torch_stitch.kept_graph import KeptGraph, keep_graphs

SAID = dict[Any, Any]()  # warnings, each once
MODES: dict[str, dict[str, Any]] = {  # as torch.compile's own backend has them
    "default": {},
    "reduce-overhead": {"cuda_graphs": True},
    "max-autotune": {"clock": "choose", "cuda_graphs": True},
    "max-autotune-no-cudagraphs": {"clock": "choose"},
}


def stitch(gm: GraphModule, example_inputs: list[Any], *, mode: str | None = None,
           options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend: what runs Dynamo's graph `gm` with such inputs, as eager does.

    It needs tensors on the CPU or one GPU, and a C++ compiler or NVRTC; where something fails, the
    graph runs unstitched, with one UserWarning.  Options are the rows of docs/settings.md, a mode
    is a set of them.  Raises ValueError or TypeError for others, and all faults with `strict`.
    """
    if (mode or "default") not in MODES:
        raise ValueError(f"found mode {mode!r}; there are {', '.join(MODES)}")
    if not (options is None or isinstance(options, Mapping)):
        raise TypeError(f'found options {options!r}; they are a dict, such as {{"strict": True}}')
    options = MODES[mode or "default"] | dict(options or {})
    try:
        target = find_target(devices_of(gm, example_inputs), options)
    except _core.UnsupportedError:
        target = None  # each graph says so
    compiler = functools.partial(compile_graph, options, BoxedDeviceIndex(None))
    for part in (m for m in gm.modules() if isinstance(m, GraphModule)):
        drop_identities(part)
    identity = sorted(options.items()), target, _core.get_option(options, "fallback_random")
    with keep_graphs(gm, _core.get_option(options, "cache"), *identity):
        return trace(gm, example_inputs, target, compiler, identity[-1])


def trace(gm: GraphModule, example_inputs: list[Any], target: str | None,
          compiler: Callable[..., Any], fallback_random: bool = False) -> Callable[..., Any]:
    """Hands each AOT graph of `gm` to compiler(kind, gm, inputs), where kind names the pass."""
    return aot_autograd(
        fw_compiler=functools.partial(compiler, "forward"),
        bw_compiler=functools.partial(compiler, "backward"),
        inference_compiler=lambda gm, *x: compiler("inference", share_seed(gm), *x),
        partition_fn=functools.partial(split_passes, target == "cpu"),
        decompositions=dict(decompositions(target, fallback_random)) if target else {},
        keep_inference_input_mutations=True,
    )(inline_regions(gm), example_inputs)


def drop_identities(gm: GraphModule) -> None:
    """Dropout that keeps all returns its argument; tracing would copy it, and lose writes."""
    for function in (torch.dropout, torch.nn.functional.dropout):
        for call in gm.graph.find_nodes(op="call_function", target=function):
            given = dict(zip(("input", "p", "training"), call.args)) | call.kwargs
            if given.get("training", given.get("train")) is False or given.get("p", 0.5) == 0:
                call.replace_all_uses_with(given["input"])
                gm.graph.erase_node(call)
    gm.recompile()


def split_passes(on_cpu: bool, gm: GraphModule, *args: Any, **how: Any) -> tuple[GraphModule, ...]:
    """Forward and backward graphs; masks are made again, never saved.

    A sum made again may have other last bits, and no element equal the extreme kept of it.
    What products read in both passes is made again on CPUs: up to a quarter less memory, and 0 to
    3 % less time (nine models, 2026-11).
    """
    for node in share_seed(gm).graph.nodes:
        if getattr(node.target, "_opname", "") in ("sum", "mean", "prod", "var", "var_mean"):
            node.meta.setdefault("recompute", torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE)
    recomputed = partitioners.pointwise_ops()  # one list for all backends
    recomputed.append(torch.ops.torch_stitch.random)
    saves = config.ban_recompute_materialized_backward and not on_cpu
    # Of equal calls that yield sizes torch would keep one, and the sizes of both.
    cse = config.cse and not any("unbacked_bindings" in node.meta for node in gm.graph.nodes)
    try:
        with config.patch(ban_recompute_materialized_backward=saves, cse=cse):
            return partitioners.min_cut_rematerialization_partition(gm, *args, **how)
    finally:
        recomputed.pop()


def inline_regions(gm: GraphModule) -> GraphModule:
    """Regions of torch.compiler.nested_compile_region, written out wherever they are called."""
    for call in gm.graph.find_nodes(op="call_function", target=invoke_subgraph):
        held, _, *operands = call.args
        region = inline_regions(getattr(gm, held.target))
        given = dict(zip(region.graph.find_nodes(op="placeholder"), operands, strict=True))
        with gm.graph.inserting_before(call):
            results = gm.graph.graph_copy(region.graph, given)
        for result in list(call.users):
            result.replace_all_uses_with(results[result.args[1]])  # or a number, or nothing
            gm.graph.erase_node(result)
        for node in (call, *[held] * (len(held.users) == 1)):
            gm.graph.erase_node(node)
    return gm


def share_seed(gm: GraphModule) -> GraphModule:
    """One draw of a seed per call, saved for the backward pass; each random op gets a stream."""
    seeds, random = dict[torch.device, Node](), torch.ops.torch_stitch.random.default
    for stream, node in enumerate(gm.graph.find_nodes(op="call_function", target=random)):
        own = node.args[0]
        seed = seeds.setdefault(own.meta["val"].device, own)
        seed.meta.pop("recompute", None)  # not even where the op is checkpointed
        node.args = (seed, stream, *node.args[2:])
        if not own.users:
            gm.graph.erase_node(own)
    return gm


def devices_of(gm: GraphModule, example_inputs: Iterable[Any]) -> set[torch.device]:
    """Of tensors; numbers on the CPU do not count, nor what lies there beside a GPU's: only library
    calls take it, as those do that bring constants to the GPU."""
    nodes = [t for node in gm.graph.nodes for t in tensors_of(node)]
    tensors = nodes + [x for x in example_inputs if isinstance(x, torch.Tensor)]
    wide = {t.device for t in tensors if t.dim() or t.device.type != "cpu"}
    beside = wide - {torch.device("cpu")}
    wide = beside if {device.type for device in beside} == {"cuda"} else wide
    return wide or {t.device for t in tensors}


def find_target(devices: set[torch.device], options: dict[str, Any] | None = None) -> str:
    """The name of the device that is planned for; an UnsupportedError where kernels run on none."""
    if all(device.type == "cpu" for device in devices):
        return _core.find_host_target(options or {})
    names = ", ".join(sorted(map(str, devices)))
    if len(devices) == 1 and names.startswith("cuda"):
        found = torch.cuda.get_device_properties(names)
        if not torch.version.hip and found.major >= 8:
            return _core.find_gpu_target(next(iter(devices)).index or 0, options or {})
        names += f", {found.name} of compute capability {found.major}.{found.minor}"
    where = "CPUs, and one NVIDIA GPU of compute capability 8.0 and up"
    raise _core.UnsupportedError(f"found tensors on {names}; kernels are for {where}")


def compile_graph(options: dict[str, Any], forward_device: BoxedDeviceIndex, kind: str,
                  gm: GraphModule, example_inputs: list[Any]) -> KeptGraph:
    """One AOT graph as a boxed callable that torch's cache may keep."""
    devices = devices_of(gm, example_inputs)
    if devices == {torch.device("meta")}:
        return by_dispatcher(gm)  # shapes are all there is to make
    gpu = max((device.index or 0 for device in devices), default=0)
    tracing = torch._guards.TracingContext.try_get() if kind == "backward" else None
    if tracing and tracing.fw_metadata:  # may be retained, and compiled before it is called
        tracing.fw_metadata.bw_donated_idxs = []
    capture = None
    if _core.get_option(options, "cuda_graphs"):
        from torch_stitch import cuda_graphs  # and all of Inductor

        setattr(stitch, "reset", cuda_graphs.reset)  # noqa: B010, with torch.compiler.reset()
        capture = cuda_graphs.choose_capture(gm, kind, forward_device)

    def finish(imported: Importer | None = None) -> KeptGraph:
        try:
            target = find_target(devices, options)
            return KeptGraph(*compile_parts(gm, options, target, gpu, imported), capture)
        except Exception as error:
            if _core.get_option(options, "strict"):
                raise
            nodes = [node for node in gm.graph.nodes if node.op == "call_function"]
            what = ", from ".join(["this graph runs without stitching", *name_ops(nodes)[:1]])
            count_fallback(what, nodes, [reason_of(error)])
            forward_device.value = None
            return by_dispatcher(gm)

    if not _core.get_option(options, "async_compile"):
        return finish()
    try:  # not on the thread: it reads what graphs that are traced next share
        imported = import_graph(gm, find_target(devices, options))
    except Exception:  # which it meets again
        return finish()
    return KeptGraph(_core.Meanwhile(by_dispatcher(gm), functools.partial(finish, imported)))


def compile_parts(gm: GraphModule, options: dict[str, Any], target: str, gpu: int = 0,
                  imported: Importer | None = None, load: bool = True) -> tuple[Any, Any]:
    """What runs, and its parts where nothing failed; ops of kernels that fail are library calls."""
    left_whole, failures = dict[Node, None](), list[str]()
    while True:
        imported = imported or import_graph(gm, target, left_whole)
        try:
            parts = imported.graph, imported.calls, options, target, load, gpu
            compiled = _core.compile(*parts)
            break
        except _core.KernelError as error:
            held = map(list(gm.graph.nodes).__getitem__, error.ops)
            failed = [n for n in held if n.op == "call_function" and n not in left_whole]
            if not failed or _core.get_option(options, "strict"):
                raise
            left_whole, imported = left_whole | dict.fromkeys(failed), None
            failures.append(reason_of(error))
    if left_whole:
        ops = ", ".join(name_ops(left_whole))
        count_fallback(f"{ops} run as library calls", left_whole, failures)
    return compiled, parts if not left_whole else None


def name_ops(nodes: Iterable[Node]) -> list[str]:
    return list(dict.fromkeys(f"{node.target} {find_location(node)}".strip() for node in nodes))


def count_fallback(what: str, nodes: Collection[Node], reasons: list[str]) -> None:
    """And warns, where the user wrote the first op that is known of, or called what is compiled."""
    _core.count_fallback(len(nodes))
    caller: Any = sys._getframe(1)
    while caller.f_back and caller.f_code.co_filename.startswith(FOLDERS):
        caller = caller.f_back
    places = [*filter(None, map(find_frame, nodes)), (caller.f_code.co_filename, caller.f_lineno)]
    what = f"torch_stitch: {what}. " + "\n".join(reasons)
    warnings.warn_explicit(what, UserWarning, *places[0], registry=SAID)


def reason_of(error: Exception) -> str:
    """What happened and where; what a compiler printed stays out, its source is kept."""
    first, *rest = str(error).splitlines()
    kept = [line for line in rest if line.startswith("  while") or "its source is" in line]
    return "\n".join([f"{type(error).__name__}: {first}", *kept])


def by_dispatcher(gm: GraphModule, take: Any = lambda args: args) -> KeptGraph:
    """The graph as it is, on what `take` makes of its arguments."""
    return KeptGraph(lambda args: torch.fx.Interpreter(gm).boxed_run(take(args)))
