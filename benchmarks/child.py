"""Measurements that need a process of their own: `python -m benchmarks.child TASK JSON_ARGUMENTS`.

The last line on stdout is the task's answer as JSON.  call_child() runs one and reads it.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils._pytree import tree_map

from benchmarks import accuracy, bert, cases, machine, measure, ptxsim_speed, subgraphs
from benchmarks.large_graphs import large_graph
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.training import training_steps
from torch_stitch.measure import timing
from torch_stitch.measure.backends import own_copy
from torch_stitch.measure.reference import copy_tensors, widen

RIVALS = ("eager", "inductor", "stitch")
CHILD_S = 600
TRAINING_DRAWS = 2


def on_gpu():
    return machine.device() == "cuda"


def on_device(fn, inputs):
    where = machine.device()
    fn = fn.to(where) if isinstance(fn, torch.nn.Module) else fn
    return fn, tree_map(lambda x: x.to(where) if isinstance(x, torch.Tensor) else x, inputs)


def judge_calls(calls, fn, inputs, terms):
    """name -> verdict of R10 on what each call leaves, the same random numbers drawn by all."""

    def run(call, inputs):
        torch.manual_seed(0)
        with torch.no_grad():
            return accuracy.tensors_after(call, copy_tensors(inputs))

    exact, eager = run(*widen(fn, inputs)), run(fn, inputs)
    return {
        name: accuracy.judge(run(call, inputs), eager, exact, terms) for name, call in calls.items()
    }


def time_function(fn, inputs, terms, rounds, is_random=False):
    """Times, ratios and accuracy of all rivals for one function."""
    fn, inputs = on_device(fn, inputs)
    calls, seconds, failed = measure.compile_rivals(RIVALS, fn, inputs)
    if is_random:  # judged with eager's random numbers, timed with a rival's own
        judged = {"stitch": torch.compile(fn, backend="stitch", options={"fallback_random": True})}
    else:
        judged = {name: call for name, call in calls.items() if name != "eager"}
    judged = judge_calls(judged, fn, inputs, terms)
    times = timing.time_interleaved(calls, inputs, rounds)
    return {
        **measure.summary(times),
        "accuracy": judged,
        "first_call_s": seconds,
        "failed": failed,
        "threads": torch.get_num_threads(),
        "clock": timing.clock().__name__,
    }


def time_case(name, rounds, threads):
    torch.set_num_threads(threads)
    case = cases.CASES[name]
    terms = case.terms(case.planning if on_gpu() else case.timing)
    fn, inputs = case.planned() if on_gpu() else case.timed()
    return time_function(fn, inputs, terms, rounds, case.is_random)


def time_limited(name, rounds, threads):
    """A function of benchmarks/limits.py; a scan's rival is the cumulative sum."""
    from benchmarks.limits import FUNCTIONS

    torch.set_num_threads(threads)
    make, rival, _ = FUNCTIONS[name]
    fn, inputs = make()
    names = RIVALS if rival in RIVALS else ("stitch",)
    calls, seconds, failed = measure.compile_rivals(names, fn, inputs)
    if rival not in RIVALS:
        calls[rival] = functools.partial(torch.cumsum, dim=1)
    times = timing.time_interleaved(calls, inputs, rounds)
    return {**measure.summary(times), "first_call_s": seconds, "failed": failed}


def time_workload(name, rounds, threads):
    """A whole model that infers."""
    torch.set_num_threads(threads)
    workload = WORKLOADS[name]
    module, inputs = workload.make("planning" if on_gpu() else "cpu")
    return time_function(module, inputs, workload.terms, rounds)


def count_bytes(names):
    """name -> bytes that ptxsim saw a subgraph's kernels move, by the width of the access."""
    from torch_stitch import _core

    options = {"strict": True, "target": "h200", "simulate": "fast"}
    counts = {}
    for name in names:
        torch._dynamo.reset()
        fn, inputs = cases.CASES[name].of_medium_size()
        _core.reset_simulated_bytes()
        with torch.no_grad():
            torch.compile(own_copy(fn), backend="stitch", options=options)(*inputs)
        counts[name] = _core.simulated_bytes()
    return counts


def judge_training(name):
    """The verdict of R10 on a training step, with eager's random numbers."""
    workload = WORKLOADS[name]
    module, inputs = on_device(*workload.make("planning" if on_gpu() else "cpu"))
    options = {"strict": True, "fallback_random": True}

    wrap = functools.partial(torch.compile, backend="stitch", options=options)
    ours = training_steps(module, inputs, wrap, TRAINING_DRAWS)
    eager = training_steps(module, inputs, draws=TRAINING_DRAWS)
    exact = training_steps(*widen(module, inputs), draws=TRAINING_DRAWS)
    return accuracy.judge(ours, eager, exact, workload.terms)


def time_tiny(rounds, threads):
    torch.set_num_threads(threads)
    return time_function(*cases.tiny_ops(), terms=1, rounds=rounds)


def compile_cold(rival):
    """Seconds until BERT-base has answered once; the caller gives fresh cache directories."""
    model, inputs = on_device(*bert.bert_base())
    with torch.no_grad():
        model(*inputs)  # threads started, pages mapped: no part of compiling
    _, seconds = measure.compile_rival(rival, model, inputs)
    return {"seconds": seconds}


def stages_of_bert(target):
    """Milliseconds of each stage of the core, for all graphs of BERT-base."""
    from tools.show import capture_graphs

    start = time.perf_counter()
    graphs = capture_graphs(*bert.bert_base(), target)
    totals = {"trace_and_import": (time.perf_counter() - start) * 1e3}
    for graph in graphs:
        for stage in graph.compile()["stages"]:
            totals[stage["name"]] = totals.get(stage["name"], 0) + stage["milliseconds"]
    return totals


def plan_large(shape, nodes, target):
    """Seconds of each stage up to the texts of kernels."""
    from torch_stitch import _core

    times = _core.show_stage(large_graph(shape, nodes), {}, target, "times").split()
    return {stage: float(us) / 1e6 for stage, us in zip(times[::2], times[1::2], strict=True)}


def predict_policies(target, names, policies):
    """Of each subgraph and policy: kernels, and microseconds by the model."""
    from tools.show import capture_graphs

    found = {}
    for name in names:
        graphs = capture_graphs(*cases.CASES[name].planned(), target)
        for policy in policies:
            plans = "\n".join(graph.show("plan", policy=policy) for graph in graphs)
            kernels = [float(us) for us in re.findall(r"^kernel \d+: ([\d.]+) us", plans, re.M)]
            found.setdefault(name, {})[policy] = {"kernels": len(kernels), "us": sum(kernels)}
    return found


def compile_optimizer(target, tensors):
    """Seconds from the graph to binaries, and launches, of an AdamW step."""
    from tools.show import capture_graphs

    with torch.device("meta"):
        fn, inputs = subgraphs.adamw_of_layers(torch.float32, tensors, *subgraphs.LAYER_SHAPES)
    (graph,) = capture_graphs(fn, inputs, target)
    start = time.perf_counter()
    kernels = graph.compile(cache="off")["kernels"]
    seconds = time.perf_counter() - start
    launches = sum(kernel["launches"] for kernel in graph.compile(clock=True)["kernels"])
    return {"seconds": seconds, "kernels": len(kernels), "launches": launches}


def compile_large(shape, nodes):
    """CPU seconds, the C++ compiler's included, from the graph to loaded kernels."""
    from torch_stitch import _core

    graph = large_graph(shape, nodes)
    start = sum(os.times()[:4])
    _core.compile(graph, _core.CallTable(), {"cache": "off"}, "cpu")
    return {"seconds": sum(os.times()[:4]) - start}


def nvrtc_kernels(target):
    """Compile time and resources of each distinct kernel of BERT-base, on one core."""
    from tools.show import capture_graphs

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    kernels = {}
    for graph in capture_graphs(*bert.bert_base(), target):
        for kernel in graph.compile()["kernels"]:
            kernels[kernel["name"]] = {
                key: kernel[key] for key in ("compile_ms", "registers", "spill_bytes", "from_cache")
            }
    return kernels


def count_misses(target):
    """Compiles BERT-base for the tensors' device, or plans it for `target`; what was not cached."""
    import torch_stitch

    model, inputs = bert.bert_base()
    if target:
        torch_stitch.explain(model, *inputs, target=target)
    else:
        measure.compile_rival("stitch", *on_device(model, inputs))
    return torch_stitch.counters()


TASKS = {
    task.__name__: task
    for task in (
        time_case,
        time_limited,
        time_workload,
        judge_training,
        count_bytes,
        time_tiny,
        compile_cold,
        stages_of_bert,
        plan_large,
        predict_policies,
        compile_optimizer,
        compile_large,
        nvrtc_kernels,
        count_misses,
        ptxsim_speed.measure_rate,
    )
}


def call_child(task, *, keep_freed_memory=False, environment=None, **arguments):
    """The answer of `task` from a fresh process."""
    command = [sys.executable, "-m", "benchmarks.child", task, json.dumps(arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=CHILD_S, cwd=machine.ROOT,
        env=measure.environment(keep_freed_memory, **(environment or {})),
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{task}({arguments}) failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def fresh_caches(directory):
    """Settings under which neither compiler finds what an earlier process left."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(directory, "inductor"),
        "TORCH_STITCH_CACHE": os.path.join(directory, "stitch"),
    }


def temporary_directory():
    return tempfile.TemporaryDirectory(prefix="stitch-bench-")


def main():
    task, arguments = sys.argv[1:]
    torch.manual_seed(0)
    print(json.dumps(TASKS[task](**json.loads(arguments))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
