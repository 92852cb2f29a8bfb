"""How fast ptxsim runs the kernel planned for a residual and its layer norm, on one core."""

import os
import time

import torch
import torch.nn.functional as F

from torch_stitch import _core, ptxsim

COLUMNS = 1024
TARGET = "h200"
# Rows such that a run takes more than a second; with checks it is several orders of the warps.
RUNS = {"without checks": (32768, False), "with checks": (4096, True)}


def residual_layernorm(x, residual, weight, bias):
    return F.layer_norm(x + residual, (COLUMNS,), weight, bias)


def plan_kernel(inputs):
    """The one kernel, as the core reports it, and its PTX."""
    from tools.show import capture_graphs

    graphs = capture_graphs(residual_layernorm, inputs, target=TARGET)
    (kernel,) = [kernel for graph in graphs for kernel in graph.compile()["kernels"]]
    return kernel, _core.compile_ptx(kernel["name"], kernel["text"], TARGET)


def prepare(rows, checks):
    """A call that runs the kernel once and answers with ptxsim's Result."""
    inputs = [torch.randn(rows, COLUMNS), torch.randn(rows, COLUMNS)]
    inputs += [torch.randn(COLUMNS), torch.randn(COLUMNS)]
    kernel, ptx = plan_kernel(inputs)
    args = [*inputs, torch.empty_like(inputs[0]), torch.zeros(1, dtype=torch.int32)]
    roles = {"inputs": range(len(inputs)), "outputs": [len(inputs)]}

    def run():
        place = kernel["name"], kernel["grid"], kernel["block"]
        return ptxsim.run(ptx, *place, args, target=TARGET, checks=checks, **roles)

    if run().findings or not torch.allclose(args[4], residual_layernorm(*inputs), atol=1e-4):
        raise RuntimeError(f"{kernel['name']} is wrong on ptxsim")
    return run


def measure_rate(what, repeats):
    """Lane instructions and seconds of this thread's CPU time, of each repeat."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    run = prepare(*RUNS[what])
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        instructions = run().lane_instructions
        seconds.append(time.thread_time() - start)
    return {"lane_instructions": instructions, "seconds": seconds}
