"""What a GPU does in a call, and for how long: by the profiler, by events, in a CUDA graph."""

import functools
import itertools
import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_leaves

import torch_stitch
from benchmarks.child import on_device
from torch_stitch.measure.backends import compile_with
from torch_stitch.measure.timing import rotate_inputs, spread

CALLS = 24  # that are profiled
CHUNKS = 7  # of calls between two events
CHUNK_US = 4000
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of the trace
FACTS = {
    "grid": "grid",
    "block": "block",
    "registers": "registers per thread",
    "shared_bytes": "shared memory",
}


def read_trace(trace):
    """What the device did, in the order in which it began, of a chrome trace as a dict."""
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in DEVICE]
    return [
        {"name": e["name"], "kind": e["cat"], "us": e["dur"]}
        | {key: e.get("args", {}).get(word) for key, word in FACTS.items()}
        for e in sorted(events, key=lambda e: e["ts"])
    ]


def summarise(events, count):
    """One entry for events that are the same; `count` is how many a call has."""
    first, us = events[0], [e["us"] for e in events]
    figures = spread(us) if len(us) > 1 else dict.fromkeys(("median", "q1", "q3", "best"), us[0])
    return {**first, "us": figures["median"], **figures, "count": count}


def group_events(events, calls):
    """An entry for each position in a call; for each name where calls are not alike."""
    per_call, rest = divmod(len(events), calls)
    rows = [events[i::per_call] for i in range(per_call)] if per_call and not rest else []
    if rows and all(len({e["name"] for e in row}) == 1 for row in rows):
        return [summarise(row, 1) for row in rows]
    by_name = defaultdict(list)
    for event in events:
        by_name[event["name"]].append(event)
    return [summarise(found, len(found) / calls) for found in by_name.values()]


def total_us(kernels):
    return sum(k["us"] * k["count"] for k in kernels)


def profile_calls(call, calls=CALLS):
    """What `calls` calls do on the device, grouped."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as found:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(errors="replace"))
    return group_events(read_trace(trace), calls)


def start_profiler():
    """The first profile of a process starts CUPTI, and may miss kernels."""
    x = torch.ones(8, device="cuda")
    profile_calls(lambda: x + 1, 2)


def time_events(call, calls):
    """Microseconds of each of `calls` calls between two events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / calls


def time_stream(call):
    """Microseconds per call in a stream: where it is short, the host's."""
    once = min(time_events(call, 3) for _ in range(3))
    calls = max(2, min(200, int(CHUNK_US / max(once, 1.0))))
    return statistics.median(time_events(call, calls) for _ in range(CHUNKS))


def capture(call, calls):
    """So many calls as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def time_graph(call, calls):
    """Microseconds per call inside a CUDA graph of so many."""
    graph = capture(call, calls)
    for _ in range(2):
        graph.replay()
    return statistics.median(time_events(graph.replay, 1) / calls for _ in range(CHUNKS))


def differentiated(fn, call):
    """A call and its backward pass, for all of its inputs and parameters that need gradients."""
    parameters = list(fn.parameters()) if isinstance(fn, torch.nn.Module) else []
    given = []

    def step(*inputs):
        results = [x for x in tree_leaves(call(*inputs)) if isinstance(x, torch.Tensor)]
        results = [x for x in results if x.requires_grad]
        if not given:
            given.extend(torch.randn_like(x) if x.dim() else torch.ones_like(x) for x in results)
        leaves = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
        wanted = [x for x in (*leaves, *parameters) if x.requires_grad]
        return torch.autograd.grad(results, wanted, given, allow_unused=True)

    return step


def make_on_gpu(work):
    """Made there, which is faster, unless it asks for CPU tensors by name."""
    try:
        with torch.device("cuda"):
            made = work.make()
    except Exception:
        made = work.make()
    return on_device(*made)


# Options of ours by rival; "stitch_early": kernels begin while the launch before them ends.
OURS = {"stitch": {}, "stitch_early": {"dependent_launch": True}}


def make_step(rival, work):
    """(step, inputs on the GPU) of a work of benchmarks/gpu_kernels.py, called once."""
    torch._dynamo.reset()
    fn, inputs = make_on_gpu(work)
    inputs = [
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x
        for x in inputs  # leaves, also after a move
    ]
    how = {"backend": rival} | ({"dynamic": None} if work.dynamic else {})
    if rival in OURS:  # installed or not
        how |= {"backend": torch_stitch.backend.stitch, "options": OURS[rival]}
    for i, dim in work.dynamic if rival != "eager" else ():
        torch._dynamo.mark_dynamic(inputs[i], dim)
    call = compile_with(fn, None if rival == "eager" else how)
    step = differentiated(fn, call) if work.is_training else call
    with torch.set_grad_enabled(work.is_training):
        step(*inputs)
    torch.cuda.synchronize()
    return step, tuple(inputs)


def count_sets(inputs):
    """Sets of inputs that rotate_inputs turns through, here at most as many as are captured."""
    moved = sum(x.nbytes for x in tree_leaves(inputs) if isinstance(x, torch.Tensor))
    return 1 + min(31, max(1, (256 << 20) // max(moved, 1)))


def measure_rival(rival, work):
    """Kernels of a call and microseconds: theirs alone, in a stream, and in a CUDA graph."""
    step, inputs = make_step(rival, work)
    sets = rotate_inputs(inputs)

    def call():
        return step(*next(sets))

    found = {}
    with torch.set_grad_enabled(work.is_training):
        for _ in range(3):
            call()
        found["kernels"] = profile_calls(call)
        found["us"] = total_us(found["kernels"])
        found["stream_us"] = time_stream(call)
        try:
            found["graph_us"] = time_graph(call, count_sets(inputs))
        except Exception as error:
            found["graph_us"], found["graph_error"] = None, str(error)[:300]
    return found


def rotate(calls):
    """One call that does the given ones in turn."""
    turn = itertools.cycle(calls)
    return functools.partial(lambda: next(turn)())
