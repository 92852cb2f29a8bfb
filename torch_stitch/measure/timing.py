"""Interleaved timing: every rival once per round, in an order that turns, so that what disturbs the
machine disturbs all of them; figures are medians over the rounds, ratios are taken within a round.
A rival's time in a round is the median of chunks: to be interrupted lengthens one of them.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from torch_stitch.measure.reference import copy_tensors

ROUND_S = 0.04  # one rival's share of a round, at least one call
CHUNKS = 8  # of a share, each of one call at least
LEAST_ROUNDS = 3
CACHED_BYTES = 256 << 20  # on a GPU inputs rotate over this much, more than its L2 holds


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rotate_inputs(inputs: Any) -> Iterator[Any]:
    """For ever, copies that no cache of a GPU holds all; on a CPU the inputs are large enough."""
    tensors = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
    moved = sum(x.nbytes for x in tensors)
    is_cuda = any(x.is_cuda for x in tensors)
    count = min(32, max(1, CACHED_BYTES // max(moved, 1))) if is_cuda else 0
    return itertools.cycle([inputs, *(copy_tensors(inputs) for _ in range(count))])


def clock() -> Callable[[], float]:
    """Of one thread its CPU time, which others on the machine do not lengthen; else wall time."""
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    return time.thread_time if alone else time.perf_counter


def time_calls(call: Any, input_sets: Iterator[Any], count: int, chunks: int = 1) -> float:
    """Milliseconds per call: the median of so many chunks of so many calls."""
    now, found = clock(), []
    for _ in range(chunks):
        synchronize()
        start = now()
        for _ in range(count):
            call(*next(input_sets))
        synchronize()
        found.append((now() - start) * 1e3 / count)
    return statistics.median(found)


def divide_share(call: Any, input_sets: Iterator[Any]) -> tuple[int, int]:
    """Calls of a chunk, and chunks; by the fastest try: unequal shares would differ in noise."""
    once = min(time_calls(call, input_sets, 1) for _ in range(2))
    if once < ROUND_S * 1e3:
        once = min(time_calls(call, input_sets, 3) for _ in range(8))
    calls = max(1, min(10_000, int(ROUND_S * 1e3 / max(once, 1e-4))))
    return max(1, calls // CHUNKS), min(CHUNKS, calls)


def order_of_round(names: list[str], i: int) -> list[str]:
    """Turned each second round and reversed between, so that all follow all others as often."""
    turn = i // 2 % len(names)
    order = names[turn:] + names[:turn]
    return order[::-1] if i % 2 else order


def time_interleaved(
    calls: Mapping[str, Any], inputs: Any, rounds: int, limit_s: float = 60.0,
    least: int = LEAST_ROUNDS, tell: Callable[[float], None] = lambda share: None
) -> dict[str, list[float]]:
    """name -> milliseconds per call, by round; `tell` hears the share of rounds that is done."""
    input_sets = rotate_inputs(inputs)
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad():
            shares = {name: divide_share(call, input_sets) for name, call in calls.items()}
            start = time.perf_counter()
            for i in range(rounds):
                for name in order_of_round(list(calls), i):
                    times[name].append(time_calls(calls[name], input_sets, *shares[name]))
                taken_s = time.perf_counter() - start
                tell(min(taken_s / (limit_s or 1.0), (i + 1) / least, 1.0))
                if taken_s > limit_s and i + 1 >= least:
                    break
    finally:
        gc.enable()
    return times


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and best."""
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "q1": first, "q3": third, "best": min(values)}
