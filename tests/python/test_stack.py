"""Kernels keep little on the stack of the thread that runs them, whatever they keep on chip."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from support.compare import compile_strictly, expect_as_exact

import torch_stitch

SMALL_BYTES = 96 << 10  # what Python and torch need themselves is about half of it

PROGRAMS = {
    "softmax": (lambda x: x.softmax(-1), (4, 100000)),
    "layer norm": (lambda x: torch.nn.functional.layer_norm(x.exp(), x.shape[-1:]), (3, 60001)),
    "columns": (lambda x: (x.exp().sum(0), x.amax(0), x.argmin(0)), (65, 20000)),
    "column softmax": (lambda x: x.softmax(0), (64, 9000)),
    "deviations": (lambda x: (x.std(0), x.softmax(1)), (300, 3000)),
    "transpose": (lambda x: (x.exp() * 2).t().contiguous() + 1, (1024, 512)),
    "several values": (
        lambda x: [(x * k).exp() / (x * k).exp().sum(-1, keepdim=True) for k in range(1, 6)],
        (2, 20000),
    ),
}


def run_in_small_thread(fn, *inputs):
    results = []

    def run():
        try:
            results.append(fn(*inputs))
        except BaseException as error:
            results.append(error)

    before = threading.stack_size(SMALL_BYTES)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return results[0]


def as_list(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thread_with_a_small_stack_runs_every_kernel(fresh, name):
    fn, shape = PROGRAMS[name]
    x = torch.randn(shape)
    compiled = compile_strictly(fn)
    compiled(x)
    got, eager, exact = run_in_small_thread(compiled, x), fn(x), fn(x.double())
    assert not isinstance(got, BaseException), got
    assert torch_stitch.counters()["library_calls"] == 0
    for one, of_eager, of_exact in zip(as_list(got), as_list(eager), as_list(exact), strict=True):
        if one.is_floating_point():
            expect_as_exact(one, of_eager, of_exact, x.numel())
        else:
            assert torch.equal(one, of_eager)


def test_workers_of_small_stacks_run_kernels_in_parallel():
    code = (
        "import torch; torch.set_num_threads(2)\n"
        "f = torch.compile(lambda x: x.softmax(-1), backend='stitch')\n"
        "x = torch.randn(64, 100000)\n"
        "torch.testing.assert_close(f(x), x.softmax(-1))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "OMP_STACKSIZE": "96k"}
    )
