"""Memory that a call takes at its peak, above what is held between calls."""

import gc
import itertools
import os
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # it would say on stderr that it starts and stops


def peak_bytes(call: Any, parameters: Any = ()) -> int:
    """By torch's allocators, and by the pool that stitch has on CPUs.  Memory of the process would
    tell pages of code that is run for the first time, and not holes of the heap that are filled.
    Gradients of the parameters, which a step makes anew, do not live between calls.
    """
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        call()
    for x in parameters:
        x.grad = None
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        rest = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - rest
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    events = profiled.profiler.kineto_results.events()
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    return max(itertools.accumulate(size for _, size in sorted(changes)), default=0)
