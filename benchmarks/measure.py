"""Interleaved timing: every rival once per round, in an order that turns, so that what disturbs the
machine disturbs all of them; figures are medians over the rounds, ratios are taken within a round.
"""

import gc
import os
import statistics
import time
import types
import warnings

import torch
from torch.utils._pytree import tree_leaves, tree_map

# A malloc that never gives memory back: no rival pays for page faults.
KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1),
}
ROUND_S = 0.04  # one rival's share of a round, at least one call
LEAST_ROUNDS = 3
CACHED_BYTES = 256 << 20  # on a GPU inputs rotate over this much, more than its L2 holds


def own_copy(fn):
    """A function with a code object of its own: the rivals' entries are not looked up before it."""
    if isinstance(fn, torch.nn.Module):
        return fn
    code = fn.__code__.replace()
    return types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def compile_rival(name, fn, inputs):
    """A rival ready to be called, and the seconds its first call took."""
    call = fn if name == "eager" else torch.compile(own_copy(fn), backend=name, dynamic=False)
    start = time.perf_counter()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="torch._inductor")
        call(*inputs)
    synchronize()
    return call, time.perf_counter() - start


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


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def copy_tensors(inputs):
    return tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, inputs)


def rotate_inputs(inputs):
    """Copies enough that no cache of a GPU holds them all; on a CPU the inputs are large enough."""
    tensors = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
    moved = sum(x.nbytes for x in tensors)
    if not any(x.is_cuda for x in tensors):
        return [inputs]
    count = min(32, max(1, CACHED_BYTES // max(moved, 1)))
    return [inputs, *(copy_tensors(inputs) for _ in range(count))]


def clock():
    """Of one thread its CPU time, which others on the machine do not lengthen; else wall time."""
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    return time.thread_time if alone else time.perf_counter


def time_calls(call, input_sets, count):
    """Milliseconds per call."""
    now = clock()
    synchronize()
    start = now()
    for i in range(count):
        call(*input_sets[i % len(input_sets)])
    synchronize()
    return (now() - start) * 1e3 / count


def time_interleaved(calls, inputs, rounds, limit_s=60.0):
    """name -> milliseconds per call, one number per round; fewer rounds where they take long."""
    input_sets = rotate_inputs(inputs)
    times = {name: [] for name in calls}
    names = list(calls)
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad():
            counts = {}
            for name, call in calls.items():
                once = time_calls(call, input_sets, 1)
                if once < ROUND_S * 1e3:  # what is slow was warm after its first call
                    once = time_calls(call, input_sets, 3)
                counts[name] = max(1, min(10_000, int(ROUND_S * 1e3 / max(once, 1e-4))))
            start = time.perf_counter()
            for i in range(rounds):
                if i >= LEAST_ROUNDS and time.perf_counter() - start > limit_s:
                    break
                for name in names[i % len(names) :] + names[: i % len(names)]:
                    times[name].append(time_calls(calls[name], input_sets, counts[name]))
    finally:
        gc.enable()
    return times


def spread(values):
    """Median, quartiles and best."""
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "q1": first, "q3": third, "best": min(values)}


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
