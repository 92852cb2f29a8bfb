"""What processes of the benchmarks share: their environment, and what is kept of their times."""

import os
import statistics

import torch

from torch_stitch.measure.backends import compile_with, time_first_call
from torch_stitch.measure.timing import spread

# A malloc that never gives memory back: no rival pays for page faults.
KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1),
}


def compile_rival(name, fn, inputs):
    """A rival ready to be called, and the seconds its first call took."""
    call = compile_with(fn, None if name == "eager" else {"backend": name})
    with torch.no_grad():
        return call, time_first_call(lambda: call(*inputs))


def compile_rivals(names, fn, inputs):
    """name -> callable, name -> seconds, name -> error; a rival that fails is left out."""
    torch._dynamo.reset()
    calls, seconds, failed = {}, {}, {}
    for name in names:
        try:
            calls[name], seconds[name] = compile_rival(name, fn, inputs)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return calls, seconds, failed


def ratio(times, rival, ours="stitch"):
    """How many times faster `ours` is: the spread of the ratios of each round."""
    return spread([theirs / mine for theirs, mine in zip(times[rival], times[ours])])


def summary(times):
    """What is kept of time_interleaved's answer."""
    rivals = [name for name in times if "stitch" in times and name != "stitch"]
    return {
        "ms": {name: spread(values) for name, values in times.items()},
        "stitch_faster_than": {name: ratio(times, name) for name in rivals},
    }


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def environment(keep_freed_memory=False, **more):
    """The environment of a child: this one's without malloc settings, and what is asked for."""
    kept = {k: v for k, v in os.environ.items() if k not in KEEP_FREED_MEMORY}
    return {**kept, **(KEEP_FREED_MEMORY if keep_freed_memory else {}), **more}
