"""Functions whose stages share launches on a GPU, at a realistic size and at a small ragged one.

The small sizes have several blocks, prime extents, and the phases of the large ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map


@dataclass(frozen=True)
class Case:
    fn: Callable
    small: list  # sizes of the inputs; a function makes other inputs than random floats
    large: list
    terms: int  # of the longest sum at the small size
    trains: bool = False  # the backward pass runs too
    phases: int = 2  # of some kernel at the small size, at least; fewer: stages only side by side
    kernels: int = 1  # of one pass at the large size, at most
    keeps: bool = False  # what several phases read stays in registers, at both sizes


def absmax(x):
    return x / x.abs().amax()


def three_reductions(x):
    return x.sum(0), x.sum(1), x.amax()


def statistics(x):
    return x.mean(), x.var(), x.amax()


def batch_norm_relu(x, weight, bias, mean, var):
    return F.batch_norm(x, mean, var, weight, bias, training=True).relu()


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def entropy(x):
    return -(x.softmax(-1) * x.log_softmax(-1)).sum(-1)


def collision(x):
    """The probability that two draws by softmax are the same."""
    return x.softmax(-1).square().sum(-1)


def standardize(x):
    return (x - x.mean()) / x.std()


def quantize(x):
    scale = x.abs().amax() / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def group_norm_silu(x, weight, bias):
    return F.silu(F.group_norm(x, 4, weight, bias))


def add_and_scale(x, y):
    total = x + y
    return total, total / total.abs().amax()


def without_means(x):
    return x - x.mean(0) - x.mean(1, keepdim=True)


def adamw(params, grads, means, squares):
    torch._foreach_mul_(params, 1 - 1e-4)
    torch._foreach_lerp_(means, grads, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, grads, grads, 0.001)
    steps = torch._foreach_sqrt(squares)
    torch._foreach_add_(steps, 1e-8)
    torch._foreach_addcdiv_(params, means, steps, -1e-3)


def half(*sizes):
    return torch.randn(*sizes, dtype=torch.bfloat16)


def parameters(make, scale):
    """20 tensors, each of a shape of its own."""
    shapes = [(7 * scale + 2 * i,) if i % 2 else (scale + i, 11 + i) for i in range(20)]
    return [make(*shape) for shape in shapes]


def labels(rows, classes):
    return torch.randint(classes, (rows,))


def channels(batch, count, height, width):
    return [(batch, count, height, width), *[(count,)] * 3, partial(torch.ones, count)]


def optimizer_state(scale):
    random, positive = partial(parameters, torch.randn), partial(parameters, torch.rand)
    return [partial(make, scale) for make in (random, random, random, positive)]


CASES = {
    "softmax_columns": Case(lambda x: x.softmax(0), [(2003, 33)], [(65536, 768)], 2003),
    "absmax": Case(absmax, [(61, 1009)], [(8192, 4096)], 1),
    "three_reductions": Case(three_reductions, [(307, 311)], [(8192, 4096)], 311),
    "statistics": Case(statistics, [(307, 311)], [(8192, 4096)], 307 * 311),
    "batch_norm_relu": Case(
        batch_norm_relu, channels(13, 5, 37, 41), channels(32, 64, 56, 56), 13 * 37 * 41
    ),
    "layer_norm": Case(
        layer_norm, [(523, 131), (131,), (131,)], [(8192, 1024), (1024,), (1024,)], 523, True
    ),
    "cross_entropy": Case(
        F.cross_entropy,
        [(67, 1301), partial(labels, 67, 1301)],
        [(8192, 32000), partial(labels, 8192, 32000)],
        1301,
        True,
        kernels=2,  # of long rows: half the time of one, whose blocks hold them
    ),
    "entropy_of_long_rows": Case(entropy, [(3, 70001)], [(3, 7000001)], 70001, phases=3),
    # At the large size 16 MB that are reduced and used again, on a device with 33 MB of registers.
    "kept_softmax_columns": Case(
        lambda x: x.softmax(0), [(1024, 96)], [(2048, 2048)], 1024, keeps=True
    ),
    "kept_softmax_of_long_rows": Case(
        lambda x: x.softmax(-1), [(2, 65536)], [(4, 1048576)], 65536, keeps=True
    ),
    "kept_collision": Case(collision, [(2, 65536)], [(64, 131072)], 65536, phases=3, keeps=True),
    "standardize": Case(standardize, [(512, 331)], [(2048, 2048)], 512 * 331, keeps=True),
    "quantize": Case(
        quantize, [partial(half, 300, 2000)], [partial(half, 2048, 4096)], 1, keeps=True
    ),
    "group_norm_silu": Case(
        group_norm_silu, [(1, 16, 256, 256), (16,), (16,)], [(1, 16, 512, 512), (16,), (16,)],
        4 * 256 * 256, keeps=True,
    ),
    "add_and_scale": Case(
        add_and_scale, [(256, 1040), (256, 1040)], [(1024, 2048), (1024, 2048)], 1, keeps=True
    ),
    "without_means": Case(without_means, [(640, 640)], [(2048, 2048)], 640, keeps=True),
    "adamw": Case(adamw, optimizer_state(5), optimizer_state(1001), 1, phases=1),
}


def make_inputs(sizes, make=torch.randn):
    return tuple(size() if callable(size) else make(*size) for size in sizes)


def weigh(result):
    """Each element counts in the loss, with a weight that every dtype has."""
    weights = torch.arange(result.numel(), device=result.device).reshape(result.shape) % 7 - 3
    return (result * (weights + 0.5).to(result.dtype)).sum()


def run_with_gradients(fn, *inputs):
    """The result of fn and the gradients of its inputs."""
    leaves = tree_map(lambda x: x.detach().requires_grad_() if x.is_floating_point() else x, inputs)
    result = fn(*leaves)
    weigh(result).backward()
    return result.detach(), [x.grad for x in leaves if x.is_floating_point()]


def run_case(case, fn, *inputs):
    """All that a call leaves: results, gradients, and the inputs that it may have changed."""
    if case.trains:
        return run_with_gradients(fn, *inputs)
    with torch.no_grad():
        results = fn(*inputs)
    return inputs if results is None else (results, inputs)
