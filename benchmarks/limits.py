"""Functions that are held to a limit by themselves: norms and sums of long and short rows, scans
written as trees, an optimiser's step written by hand, the time that graphs take to compile, and how
often the rule of benchmark() that tells a difference from noise is wrong.
"""

import statistics

import torch
from torch._higher_order_ops.associative_scan import associative_scan

from benchmarks.child import call_child, fresh_caches, temporary_directory
from benchmarks.large_graphs import SHAPES
from benchmarks.rows import Row
from torch_stitch.measure.noise import compare_times
from torch_stitch.measure.timing import time_interleaved

ADAMW_TENSORS = 20


def rmsnorm():
    def fn(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

    return fn, (torch.randn(8192, 2048), torch.randn(2048))


def row_sums():
    return lambda x: x.sum(-1), (torch.randn(750_000, 32),)


def residual_layernorm():
    def fn(x, residual, weight, bias):
        total = x + residual
        return torch.nn.functional.layer_norm(total, (2048,), weight, bias), total

    return fn, tuple(torch.randn(shape) for shape in ((8192, 2048),) * 2 + ((2048,),) * 2)


def adamw():
    """Twenty tensors, each stepped by a loop over the parameters, as users write it."""

    def fn(params, grads, means, squares):
        for p, g, m, v in zip(params, grads, means, squares, strict=True):
            p.mul_(1 - 1e-3 * 1e-2)
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-3)

    def table():
        return [torch.rand(512, 512) for _ in range(ADAMW_TENSORS)]

    return fn, (table(), table(), table(), table())


def scan(length):
    def fn(x):
        return associative_scan(torch.add, x, 1, combine_mode="generic")

    return fn, (torch.randn((1 << 20) // length, length),)


FUNCTIONS = {
    "RMS norm of [8192, 2048]": (rmsnorm, "inductor", 1.0),
    "row sums of [750000, 32]": (row_sums, "inductor", 1.0),
    "residual and layer norm of [8192, 2048]": (residual_layernorm, "inductor", 1.0),
    f"AdamW of {ADAMW_TENSORS} tensors": (adamw, "inductor", 1.0),
    "scan of 16": (lambda: scan(16), "cumsum", 3.0),
    "scan of 4096": (lambda: scan(4096), "cumsum", 3.0),
}


def single_functions(request, processes=3):
    """Time over a rival's: Inductor's, or of a scan torch's cumulative sum.

    The median of several processes: where memory lies decides up to half of the time of what is
    bound by it, and stays for the life of one."""
    for name, (_, rival, limit) in FUNCTIONS.items():
        answers = [
            call_child(
                "time_limited", name=name, rounds=request.rounds, threads=1, keep_freed_memory=True
            )
            for _ in range(processes)
        ]
        ratios = [1 / answer["stitch_faster_than"][rival]["median"] for answer in answers]
        value = statistics.median(ratios)
        yield Row(f"{name}, time over {rival}", round(value, 3), limit, detail=answers)


def second_process(request, repeats=3):
    """First calls of BERT-base in a process that finds what another has left in the caches."""
    seconds = {"inductor": [], "stitch": []}
    for _ in range(repeats):
        for rival, found in seconds.items():
            with temporary_directory() as directory:
                caches = fresh_caches(directory)
                call_child("compile_cold", rival=rival, environment=caches)
                again = call_child("compile_cold", rival=rival, environment=caches)
            found.append(again["seconds"])
    ratio = statistics.median(ours / theirs for theirs, ours in zip(*seconds.values(), strict=True))
    name = "BERT-base, first call in a second process, seconds of stitch / Inductor"
    yield Row(name, round(ratio, 3), 0.9, detail=seconds)


def growth(request):
    """From the graph to loaded kernels; the shape that grows most counts."""
    ratios = {}
    for shape in SHAPES:
        few, many = (
            call_child("compile_large", shape=shape, nodes=nodes)["seconds"]
            for nodes in (1_000, 10_000)
        )
        ratios[shape] = {"1000": few, "10000": many, "ratio": many / few}
    worst = max(ratios, key=lambda shape: ratios[shape]["ratio"])
    name = f"compile time of 10,000 nodes over 1,000, worst shape ({worst})"
    yield Row(name, round(ratios[worst]["ratio"], 2), 12, detail=ratios)


def repeated_tanh(count):
    x = torch.rand(4096)

    def fn():
        for _ in range(count):
            x.tanh()

    return fn


def noise_rule(request, repeats=50, rounds=40):
    """How often the rule that tells a difference from noise is wrong, on this machine as it is."""
    torch.set_num_threads(request.threads)
    verdicts = {100: [], 110: []}
    for _ in range(repeats):
        for count, found in verdicts.items():
            calls = {"first": repeated_tanh(100), "second": repeated_tanh(count)}
            found.append(compare_times(time_interleaved(calls, (), rounds), "first", "second"))
    wrong = sum(verdict.is_different for verdict in verdicts[100])
    slower = [verdict.is_different and verdict.slow == "second" for verdict in verdicts[110]]
    detail = {count: list(map(str, found)) for count, found in verdicts.items()}
    name = f"of {repeats}, two equal functions called different"
    yield Row(name, wrong, repeats // 50, detail=detail)
    name = f"of {repeats}, a function that is 10 % slower called slower"
    yield Row(name, sum(slower), repeats * 9 // 10, at_least=True)


GROUPS = {group.__name__: group for group in (single_functions, second_process, growth, noise_rule)}
