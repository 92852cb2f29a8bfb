"""CUDA graphs of what is compiled, by torch's own trees (torch._inductor.cudagraph_trees).

They copy inputs that move, record again for other sizes and for parameters that moved, and run as
it is what writes an argument that may move.  A replay passes none of the core's own checks of what
kernels report, so they are made here.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.backends.cudagraphs import find_input_mutations, get_stack_traces
from torch._inductor import compile_fx, cudagraph_trees, cudagraph_utils, utils
from torch._inductor.cudagraph_utils import BoxedDeviceIndex
from torch.fx import GraphModule

from torch_stitch._core import CompiledGraph
from torch_stitch.fx_calls import tensors_of

reset = cudagraph_trees.reset_cudagraph_trees
Boxed = Callable[[list[Any]], Any]
Capture = Callable[[CompiledGraph], Boxed]


def find_reason(gm: GraphModule) -> str:
    """Why this graph of a GPU cannot be captured, in words; empty where it can."""
    devices = sorted(map(str, devices_of(gm)))
    if len(devices) > 1:
        return f"tensors on {' and '.join(devices)}"
    for node in gm.graph.find_nodes(op="placeholder"):
        if isinstance(node.meta.get("val"), (float, torch.SymFloat)):
            return f"the number {node.name}, which may be another in the next call"
    waiting = utils.get_first_incompatible_cudagraph_node(gm)
    return f"{waiting.target}, for which the host waits" if waiting else ""


def devices_of(gm: GraphModule) -> set[torch.device]:
    return {tensor.device for node in gm.graph.nodes for tensor in tensors_of(node)}


def choose_capture(gm: GraphModule, kind: str, forward_device: BoxedDeviceIndex) -> Capture | None:
    """What makes of the compiled graph one that is recorded and replayed; pickled with it.

    None: it runs as it is.  A backward pass is recorded only where its forward pass is, whose
    device `forward_device` holds then: what other passes save moves from call to call.
    """
    gpus = [device.index for device in devices_of(gm) if device.type == "cuda"]
    is_backward, device = kind == "backward", forward_device.value
    if not gpus or (is_backward and device is None):
        return None
    if reason := find_reason(gm):
        message = cudagraph_utils.format_default_skip_message(reason)
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(message)
        return functools.partial(begin_backward, device) if is_backward else None
    forward_device.value = gpus[0]
    how: dict[str, Any] = {
        "static_input_idxs": compile_fx.get_static_input_idxs(0),
        "device_index": gpus[0],
        "stack_traces": get_stack_traces(gm),
        "is_backward": is_backward,
        "is_inference": kind == "inference",
        "placeholders": cudagraph_utils.get_placeholder_info(gm.graph),
        "mutated_input_idxs": tuple(sorted(find_input_mutations(gm.graph))),
    }
    how |= {"static_input_idxs": range(utils.count_tangents(gm))} if is_backward else {}
    gm.meta["is_captured"] = True
    return functools.partial(record, how)


def record(how: dict[str, Any], compiled: CompiledGraph) -> Boxed:
    """Runs, records and replays, in this order, for each set of sizes."""
    replay = compile_fx.cudagraphify(compiled, **how)

    def run(args: list[Any]) -> Any:
        compiled.check_flags()  # of calls before this one
        results = replay(args)
        compiled.check_flags()
        return results

    return run


def begin_backward(device: int, compiled: CompiledGraph) -> Boxed:
    """As it is, behind a forward pass whose results are a recorded graph's."""

    def run(args: list[Any]) -> Any:
        if manager := cudagraph_trees.get_manager(device, create_if_none_exists=False):
            manager.set_to_running_backward()
        return compiled(args)

    return run
