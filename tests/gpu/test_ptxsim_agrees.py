"""What ptxsim says a kernel does is what the GPU does: the same PTX on both, compared bit by bit.

Where a kernel's PTX has an approximate instruction, whose rounding is the device's own, results
may differ by a few units; so they may where a library's product comes first, which adds up in an
order of its own.
"""

import copy
import re
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

import torch_stitch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "python")]

import test_ptxsim_samples as samples  # noqa: E402
from test_ptxsim_samples import *  # noqa: E402, F403  each test of a sample runs here on both

from benchmarks.child import on_device  # noqa: E402
from tests.support.compare import compile_strictly, expect_equal  # noqa: E402
from tests.support.programs import ROUNDED, SAME_BITS, make  # noqa: E402
from tools.show import capture_graphs  # noqa: E402
from torch_stitch.backend import find_target  # noqa: E402
from torch_stitch.measure.reference import copy_tensors  # noqa: E402

pytestmark = [pytest.mark.gpu, samples.needs_nvrtc]
APPROXIMATE = re.compile(r"\.approx\b|\bdiv\.full\b")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    monkeypatch.setattr(samples, "launch", launch_on_both)


def target_of_gpu():
    return find_target({torch.device("cuda", torch.cuda.current_device())})


def expect_agreement(on_gpu, simulated, texts):
    on_gpu = torch.utils._pytree.tree_map(
        lambda x: x.cpu() if isinstance(x, torch.Tensor) else x, on_gpu
    )
    tensors = [x for x in tree_leaves(simulated) if isinstance(x, torch.Tensor)]
    floats = [x for x in tensors if x.is_floating_point()]
    unit = max((torch.finfo(x.dtype).eps for x in floats), default=0.0)
    tolerance = {}
    if floats and any(map(APPROXIMATE.search, texts)):
        tolerance = {"rtol": max(1e-5, 2 * unit), "atol": max(1e-6, 2 * unit)}
    if floats and torch_stitch.counters()["library_calls"]:
        largest = max(x.abs().max().item() for x in floats)
        tolerance = {"rtol": 8 * unit, "atol": 8 * unit * largest}
    expect_equal(on_gpu, simulated, **tolerance)


# Kernels as people write them.


def three(sizes):
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return sizes + (1,) * (3 - len(sizes))


def run_on_gpu(ptx, kernel, grid, block, args, shared_bytes):
    """The tensors among `args` after a launch by the driver, the others as they are."""
    loaded = torch.cuda._utils._cuda_load_module(ptx, [kernel])[kernel]
    _, given = on_device(None, args)
    loaded(three(grid), three(block), given, shared_bytes)
    torch.cuda.synchronize()
    return given


def launch_on_both(name, kernel, grid, block, args, *, shared_bytes=0, **how):
    """Takes the place of the samples' launch(); blocks that wait for each other are resident."""
    source = (samples.SAMPLES / f"{name}.cu").read_text()
    target = target_of_gpu()
    ptx = torch_stitch._core.compile_ptx(kernel, source, target)
    on_gpu = run_on_gpu(ptx, kernel, grid, block, args, shared_bytes)
    place = grid, block, args
    found = samples.ptxsim.run(
        ptx, kernel, *place, shared_bytes=shared_bytes, target=target, **how
    ).findings
    assert not found, found
    expect_agreement(on_gpu, args, [ptx])


# Kernels of compiled functions.


def texts_of(fn, inputs, target):
    """The PTX of every kernel that is planned for fn(*inputs)."""
    graphs = capture_graphs(fn, inputs, target=target)
    kernels = [kernel for graph in graphs for kernel in graph.compile()["kernels"]]
    assert kernels
    return [torch_stitch._core.compile_ptx(k["name"], k["text"], target) for k in kernels]


def run_compiled(fn, inputs, **options):
    torch._dynamo.reset()
    fn, inputs = copy.deepcopy(fn), copy_tensors(inputs)
    with torch.no_grad():
        results = compile_strictly(fn, options=options)(*inputs)
    assert torch_stitch.counters()["fallback_ops"] == 0
    return results, inputs


def check(fn, inputs):
    target = target_of_gpu()
    simulated = run_compiled(fn, inputs, target=target, simulate=True)
    expect_agreement(run_compiled(*on_device(fn, inputs)), simulated, texts_of(fn, inputs, target))


@pytest.mark.parametrize("name", SAME_BITS)
def test_programs_whose_bits_the_cpu_has_too(name):
    check(*make(name))


@pytest.mark.parametrize("name", ROUNDED)
def test_named_subgraphs(name):
    check(*ROUNDED[name][0]())
