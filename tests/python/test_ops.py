"""Each op of torch's own sample lists, over its dtypes: stitched, and as good as eager."""

import itertools
import warnings

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import torch_stitch
from tests.support.compare import compile_strictly, find_fault

pytest.importorskip("numpy", reason="torch's sample lists need numpy")
from tests.support import torch_ops  # noqa: E402
from tests.support.op_samples import is_luck  # noqa: E402
from tests.support.torch_ops import WRITERS, op_db  # noqa: E402

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
DTYPES = (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool)
SAMPLES = 1  # of each dtype, and one more of these; `make opinfo` takes all
TWICE = (torch.float32, torch.int64)

# Variants that stay library calls: a singular value decomposition, rounding to decimal places.
NOT_STITCHED = ("norm_nuc", "round_decimals_0", "round_decimals_3", "round_decimals_neg_3")
# What else is called: copies into running statistics, indexing of a 0-d tensor.
PARTLY_CALLS = ("nn.functional.instance_norm", "index_select")

def entries(names):
    """The (name, variant) rows of op_db; every name must be there."""
    rows = [op for op in op_db if op.name in names]
    missing = set(names) - {op.name for op in rows}
    assert not missing, f"torch has no OpInfo for {sorted(missing)}"
    rows = [op for op in rows if op.formatted_name not in NOT_STITCHED and op.dtypes & set(DTYPES)]
    return [pytest.param(op, id=op.formatted_name) for op in rows]


def draw(op, dtype):
    """(position, sample) of the first in torch's list, on the default device."""
    device = torch.get_default_device()
    samples = enumerate(op.sample_inputs(device, dtype, requires_grad=False))
    # A tensor that holds a size makes one of the results' extents depend on data.
    plain = (
        (at, (s.input, tuple(s.args), dict(s.kwargs)))
        for at, s in samples
        if op.name != "narrow" or not isinstance(s.args[1], torch.Tensor)
    )
    first = [*itertools.islice(plain, SAMPLES + (dtype in TWICE))]
    return tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, first)


def widen(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def in_fp64(fn, samples):
    """The exact results; results that take the default dtype get fp64 too."""
    torch.set_default_dtype(torch.float64)
    try:
        return fn(tree_map(widen, samples))
    finally:
        torch.set_default_dtype(torch.float32)


def find_faults(fn, samples, got):
    """(number of the sample, what is wrong, in words) of each result that is not as eager's."""
    expected = [tree_leaves(x) for x in fn(samples)]
    exact = [tree_leaves(x) for x in in_fp64(fn, samples)]
    faults = []
    rows = zip(samples, map(tree_leaves, got), expected, exact, strict=True)
    for number, (sample, *row) in enumerate(rows):
        given = [x for x in tree_leaves(sample) if isinstance(x, torch.Tensor)]
        text = ", ".join(f"{tuple(x.shape)} {x.dtype}" for x in given)
        for g, e, wide in zip(*row, strict=True):
            count = e.numel() if isinstance(e, torch.Tensor) else 1
            terms = max(x.numel() for x in given) // max(count, 1)
            fault = find_fault(g, e, wide, terms)
            if fault is not None:
                faults.append((number, fault, f"{text} {sample[1:]}: {fault}"))
    return faults


def check(op, fn):
    """One graph holds every dtype of the op."""
    device = torch.get_default_device().type
    dtypes = [dtype for dtype in DTYPES if dtype in op.supported_dtypes(device)]
    given = [(dtype, *row) for dtype in dtypes for row in draw(op, dtype)]
    samples = [sample for *_, sample in given]
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = compile_strictly(fn)(samples)
        faults = find_faults(fn, samples, got)
    counters = torch_stitch.counters()
    # Of few elements an rmse is the luck of single roundings: more of the kind decide.
    faults = [
        text
        for number, fault, text in faults
        if not (isinstance(fault, dict) and is_luck(op, *given[number][:2], device))
    ]
    assert not faults, f"{len(faults)} of {len(samples)} samples:\n" + "\n".join(faults)[:3000]
    assert counters["kernels"] > 0, counters
    assert counters["fallback_ops"] == 0, counters
    assert counters["library_calls"] == 0 or op.name in (*PARTLY_CALLS, *WRITERS), counters


def on_each(op):
    return lambda samples: [op.op(x, *args, **kwargs) for x, args, kwargs in samples]


def on_each_and_read(op):
    """A view alone is no work; its reader is."""

    def fn(samples):
        views = [op.op(x, *args, **kwargs) for x, args, kwargs in samples]
        return [tree_map(lambda x: x + x, view) for view in views]

    return fn


@pytest.mark.parametrize("op", entries(torch_ops.POINTWISE + torch_ops.NO_OPS_OR_CASTS))
def test_pointwise_ops_are_stitched_and_right(op):
    check(op, on_each_and_read(op) if op.name in torch_ops.NO_OPS_OR_CASTS else on_each(op))


@pytest.mark.parametrize("op", entries(torch_ops.REDUCTIONS))
def test_reductions_are_stitched_and_right(op):
    check(op, on_each(op))


@pytest.mark.parametrize("op", entries(torch_ops.VIEWS))
def test_views_are_stitched_and_right(op):
    check(op, on_each_and_read(op))


@pytest.mark.parametrize("op", entries(torch_ops.READERS))
def test_readers_are_stitched_and_right(op):
    check(op, on_each(op))


@pytest.mark.parametrize("op", entries(WRITERS))
def test_writers_are_stitched_and_right(op):
    check(op, on_each(op))


@pytest.mark.parametrize("op", entries(torch_ops.COMPOSITES))
def test_norms_softmax_and_losses_are_stitched_and_right(op):
    check(op, on_each(op))
