"""How results are compared with eager's: bit for bit, or by rule R10; and what was stitched."""

import copy
import time

import pytest
import torch
from torch.utils._pytree import tree_leaves

import torch_stitch
from benchmarks.accuracy import WORST_RATIO, judge_tensor

# Eager's CPU kernels carry some sums in fp64 (the gradients of batch norm), those of CUDA in fp32.
# A GPU's kernels stand beside the CPU's eager here: of so few elements, where one sum that cancels
# decides the rmse, only the worst one is compared.
FEW_SIMULATED = 16


def call_among_threads(compiled, *inputs):
    """Waits, at most 10 s, while torch takes the tracing of another thread for this one's.

    It has one flag for all threads, and refuses calls of any backend's functions while it is set.
    """
    for _ in range(200):
        try:
            return compiled(*inputs)
        except RuntimeError as error:
            if "using FX to symbolically trace" not in str(error):
                raise
            time.sleep(0.05)
    return compiled(*inputs)


def compile_strictly(fn, *, options=None, **how):
    options = {"strict": True} | (options or {})
    return torch.compile(fn, backend="stitch", fullgraph=True, options=options, **how)


def expect_torch_traces(fn, *inputs, **how):
    """An expected failure where Dynamo of this version does not, for no backend."""
    try:
        torch.compile(fn, backend="eager", fullgraph=True, **how)(*inputs)
    except torch._dynamo.exc.TorchDynamoException as error:
        pytest.xfail(f"torch {torch.__version__}: {type(error).__name__}: {error}")
    finally:
        torch._dynamo.reset()


def expect_stitched(copies=0):
    """Kernels ran; copies: how many library calls may stand beside them."""
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters
    assert counters["library_calls"] <= copies, counters


def as_bits(x):
    """Equal bits are equal values, except that all NaNs are one."""
    if not x.is_floating_point():
        return x
    x = x.float() if x.element_size() == 1 else x  # as which all of it is told apart
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    return torch.where(x.isnan(), torch.full_like(x, torch.nan), x).contiguous().view(bits)


def steps(x):
    """Strides of the dimensions in which there is more than one step."""
    return [s for s, n in zip(x.stride(), x.shape) if n > 1]


def expect_equal(got, expected, all_strides=True, **tolerance):
    """The same values in the same layout, with no tolerance unless given."""
    strides = torch.Tensor.stride if all_strides else steps
    for i, (g, e) in enumerate(zip(tree_leaves(got), tree_leaves(expected), strict=True)):
        if not isinstance(e, torch.Tensor):
            assert g == e, i
            continue
        assert (g.dtype, g.shape) == (e.dtype, e.shape), i
        assert strides(g) == strides(e), (i, g.shape, g.stride(), e.stride())
        if tolerance:
            torch.testing.assert_close(g, e, equal_nan=True, **tolerance)
        else:
            assert as_bits(g).equal(as_bits(e)), f"result {i}: got {g}, eager has {e}"


def check(fn, *inputs, copies=0, options=None, dynamic=None, **how):
    """Stitched; results and changed inputs are eager's, with no tolerance unless given.

    copies: how many inputs may be written by a copy after the kernel that still reads them.
    how: what expect_equal takes.
    """
    mine, theirs = (copy.deepcopy(inputs) for _ in range(2))
    with torch.no_grad():
        compiled = compile_strictly(fn, options=options, dynamic=dynamic)
        got, expected = compiled(*mine), fn(*theirs)
    expect_equal((got, mine), (expected, theirs), **how)
    expect_stitched(copies)


def is_simulated():
    return torch_stitch._core.get_option({}, "simulate") != "false"


def find_fault(got, eager, exact, terms):
    """What is wrong with one result, nothing if it is as good as eager's by rule R10."""
    if not isinstance(eager, torch.Tensor):
        return None if got == eager else (got, eager)
    if not eager.dtype.is_floating_point:
        return None if got.dtype == eager.dtype and got.equal(eager) else (got, eager)
    verdict = judge_tensor(got, eager, exact, terms)
    is_few = is_simulated() and eager.numel() < FEW_SIMULATED
    if verdict["ok"] or (is_few and verdict.get("worst_ratio", 9) <= WORST_RATIO):
        return None
    layouts = [(x.dtype, x.shape, x.stride()) for x in (got, eager)]
    return layouts if "why" in verdict else verdict


def expect_as_exact(got, eager, exact, terms):
    rows = zip(*map(tree_leaves, (got, eager, exact)), strict=True)
    for i, row in enumerate(rows):
        fault = find_fault(*row, terms)
        assert fault is None, (i, fault)
