"""Samples of torch's lists, run and compared with eager: one by one, or many draws pooled."""

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests.support.compare import find_fault
from tests.support.poisoned import check_device

DRAWS = 128  # of a sample that misses R10: of few elements an rmse is the luck of single roundings
DRAWS_TOGETHER = 8  # in one graph: the next one has its kernels, if its sizes are the same
CLOSE = {torch.float64: (1e-9, 1e-11), torch.complex64: (1e-4, 1e-5)}


def sample_list(op, dtype, seed=0, device="cpu"):
    """(input, args, kwargs) of each; tensors of floats ask for gradients where the op has them."""
    torch.manual_seed(seed)
    wants = dtype.is_floating_point and op.supports_autograd
    samples = op.sample_inputs(device, dtype, requires_grad=wants, set_seed=False)
    return [(s.input, tuple(s.args), dict(s.kwargs)) for s in samples]


def fresh(samples):
    """The same samples on memory of their own."""

    def copied(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().clone().requires_grad_(x.requires_grad)

    return tree_map(copied, samples)


WIDE = {dtype: torch.float64 for dtype in (torch.float16, torch.bfloat16, torch.float32)}
WIDE |= {torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def widened(samples):
    """The same in fp64, and dtypes that are arguments."""

    def wide(x):
        if not isinstance(x, torch.Tensor):
            return WIDE.get(x, x) if isinstance(x, torch.dtype) else x
        return x.detach().to(WIDE.get(x.dtype, x.dtype), copy=True).requires_grad_(x.requires_grad)

    return tree_map(wide, samples)


def tensors_in(tree):
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def weights_of(y):
    return (torch.arange(y.numel(), device=y.device) % 7 + 1.0).reshape(y.shape).to(y.dtype)


def run(function, samples):
    """By sample: results, and the gradients of what asks for them."""
    torch.manual_seed(0)
    rows, found = function(samples), []
    for sample, results in zip(samples, rows, strict=True):
        leaves = [x for x in tensors_in(sample) if x.requires_grad]
        made = [y for y in tensors_in(results) if y.requires_grad and y.is_floating_point()]
        row = [y.detach() if isinstance(y, torch.Tensor) else y for y in tree_leaves(results)]
        if leaves and made:
            total = sum((y * weights_of(y)).double().sum() for y in made)
            grads = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
            row += [x.new_zeros(()) if g is None else g for x, g in zip(leaves, grads, strict=True)]
        found.append(row)
    return found


def applied(op):
    def fn(samples):
        return [op.op(x, *args, **kwargs) for x, args, kwargs in samples]

    return fn


def outcomes(op, samples, backend):
    """By sample, (found, eager's, eager's once more, exact) of each result; words where it fails.

    The samples are one graph.
    """
    fn = applied(op)
    eager, again = (run(fn, fresh(samples)) for _ in range(2))
    try:
        torch.set_default_dtype(torch.float64)
        exact = run(fn, widened(samples))
    except Exception:
        exact = eager
    finally:
        torch.set_default_dtype(torch.float32)
    options = {"options": {"strict": True}} if backend == "stitch" else {}
    torch._dynamo.reset()
    try:
        found = run(torch.compile(fn, backend=backend, **options), fresh(samples))
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]}"
        check_devices(samples, text)
        return text
    check_devices(samples, f"after {backend} ran")
    for mine, theirs in zip(found, eager, strict=True):
        if len(mine) != len(theirs):
            return f"{len(mine)} results, eager {len(theirs)}"
    wide = [e if len(e) == len(row) else row for e, row in zip(exact, eager, strict=True)]
    return [list(zip(*rows, strict=True)) for rows in zip(found, eager, again, wide, strict=True)]


def check_devices(samples, doing):
    for device in {x.device for x in tensors_in(samples)}:
        check_device(device, doing)


def is_luck(op, dtype, position, device="cpu"):
    """Whether a sample of few elements keeps to R10 over more of its kind, all errors pooled."""
    drawn = [sample_list(op, dtype, seed, device)[position:][:1] for seed in range(DRAWS)]
    drawn = [sample for samples in drawn for sample in samples]  # a seed may have fewer
    results = []
    for at in range(0, len(drawn), DRAWS_TOGETHER):
        found = outcomes(op, drawn[at : at + DRAWS_TOGETHER], "stitch")
        results += [()] if isinstance(found, str) else found
    if () in results or len({len(rows) for rows in results}) > 1:
        return False
    largest = max((x.numel() for x in tensors_in(drawn[0])), default=1)
    if any(isinstance(compare(*row, largest), (str, tuple)) for rows in results for row in rows):
        return False
    for alike in zip(*results, strict=True):
        if not all(isinstance(x, torch.Tensor) for row in alike for x in row):
            continue
        pooled = (torch.cat([x.flatten() for x in parts]) for parts in zip(*alike, strict=True))
        if compare(*pooled, largest * len(drawn)):
            return False
    return True


def compare(mine, theirs, again, wide, largest):
    """Nothing, or what is wrong; of what eager does not repeat only the form counts."""
    if not isinstance(theirs, torch.Tensor):
        return None if mine == theirs or mine != mine else (mine, theirs)
    if mine.device != theirs.device:
        return f"on {mine.device}, eager on {theirs.device}"
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return f"{mine.dtype} {tuple(mine.shape)}, eager {theirs.dtype} {tuple(theirs.shape)}"
    if theirs.layout != torch.strided or theirs.is_quantized:
        return None
    if theirs.dtype == torch.complex32:  # has next to no ops
        mine, theirs, again = (x.to(torch.complex64) for x in (mine, theirs, again))
    if not torch.equal(theirs.nan_to_num(), again.nan_to_num()):
        return None
    if not theirs.dtype.is_floating_point or theirs.dtype == torch.float64:
        near = CLOSE.get(theirs.dtype)  # nothing is exact beside these
        same = torch.allclose(mine, theirs, *near, True) if near else torch.equal(mine, theirs)
        return None if same else (mine.tolist(), theirs.tolist())
    wide = wide if wide.shape == theirs.shape and wide.is_floating_point() else theirs
    row = [x.clone(memory_format=torch.contiguous_format) for x in (mine, theirs, wide.double())]
    return find_fault(*row, largest // max(theirs.numel(), 1))
