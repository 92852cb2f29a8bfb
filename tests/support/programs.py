"""Functions that run as a GPU's kernels, on ptxsim or on a GPU, with inputs of ragged sizes.

`SAME_BITS` holds those whose every result is decided by IEEE 754 and the text of the kernel: no
sum depends on its order, no library of the host or of CUDA is called, no instruction is
approximate.  `ROUNDED` holds the rest.
Kernels have several warps and, but for sums of a whole tensor, blocks; one extent is prime.
"""

from functools import partial

import torch
import torch.nn.functional as F

from benchmarks.cases import BF16, CASES, FP32

ROWS, COLUMNS = 19, 301
EDGES = (0.0, -0.0, 1.0, -1.0, 2.5, 1e-40, 6e4, -3e38, float("inf"), -float("inf"), float("nan"))

# Small, ragged sizes of the named subgraphs.
SIZES = {
    "groupnorm_silu": {"batch": 3, "channels": 20, "size": 17, "groups": 4},
    "masked_softmax": {"batch": 2, "heads": 3, "cols": 77},
    "qk_norm_rope": {"batch": 2, "length": 19, "heads": 3, "cols": 64},
    "embedding_layernorm": {"batch": 3, "length": 7, "cols": 768, "vocabulary": 101},
    "batchnorm_relu": {"batch": 5, "channels": 12, "size": 11},
    "masked_softmax_dropout": {"batch": 2, "heads": 3, "cols": 77},
    "groupnorm_silu_large": {"batch": 1, "channels": 6, "size": 61, "groups": 2},
    "swiglu_ffn": {"rows": 37, "cols": 64, "hidden": 135},
    "adamw_foreach": {"tensors": 5, "rows": 37, "cols": 33},
    "fs18_attention": {"batch": 3, "heads": 2, "length": 17, "cols": 24},
    "segment_softmax_sorted": {"edges": 1009, "nodes": 101, "is_sorted": True},
    "segment_softmax_unsorted": {"edges": 1009, "nodes": 101, "is_sorted": False},
    "transpose_reduce_transpose": {"batch": 3, "cols": 131, "width": 37},
}
TABLES = ({"rows": 37, "cols": 1000}, {"rows": 129, "cols": 4096}, {"rows": 5, "cols": 7})


def sizes_of(name):
    return [SIZES[name]] if name in SIZES else TABLES


def table(dtype, rows=ROWS, columns=COLUMNS):
    """Random numbers; those of floats begin with edges, so that two tables have all their pairs."""
    if dtype == torch.bool:
        return torch.rand(rows, columns) < 0.5
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, (rows, columns), dtype=dtype)
    x = torch.randn(rows, columns, dtype=torch.float64) * 3
    x.view(-1)[:500] = torch.tensor(EDGES)[torch.randint(len(EDGES), (500,))]
    return x.to(dtype)


def whole_numbers(dtype):
    """Sums of these are exact in any order."""
    return torch.randint(-4, 5, (ROWS, COLUMNS)).to(dtype)


# Pointwise.


def arithmetic(x, y):
    of_two = x + y, x - y, x * y, x / y, x // y, x % y, x.fmod(y), x.copysign(y)
    # Of two zeros the CPU takes either, a GPU the one whose sign decides.
    chosen = x.maximum(y) + 0.0, x.fmin(y) + 0.0, x.clamp(max=y) + 0.0
    blended = x.where(x > y, y), x.lerp(y, 0.25)
    rounded = x.ceil(), x.floor(), x.trunc(), x.round(), x.frac()
    of_one = -x, x.abs(), x.sign(), x.relu(), x.reciprocal(), x.abs().sqrt()
    return *of_two, *chosen, *blended, *rounded, *of_one, x < y, x == y, x.isnan(), x.signbit()


def elementary(x, y):
    down = x.log(), x.log2(), x.log10(), x.log1p(), x.asinh(), x.acosh()
    around = x.sin(), x.cos(), x.tan(), x.atan(), x.atan2(y), x.hypot(y)
    return *down, *around, x.abs().pow(y), x.expm1()


def special(x):
    return x.erf(), x.erfinv(), x.lgamma(), x.digamma(), x.asin(), x.acos(), x.atanh()


def exponentials(x):
    """What a GPU makes of approximate instructions."""
    plain = x.exp(), x.exp2(), x.sinh(), x.cosh(), x.sigmoid(), x.tanh(), x.erfc()
    made = F.silu(x), F.gelu(x), F.softplus(x), F.gelu(x, approximate="tanh"), F.mish(x)
    return *plain, *made, x.abs().rsqrt(), x / (x.exp() + 1), x.sigmoid() + x.tanh() * x


def whole_arithmetic(x, y):
    shift, divisor = y & 7, torch.where(y == 0, 3, y)
    bits = x & y, x | y, x ^ y, ~x, x << shift, x >> shift
    quotients = x // divisor, x.div(divisor, rounding_mode="trunc"), x % divisor, x.fmod(divisor)
    return *bits, *quotients, x + y, x - y, x * y, x.minimum(y), x.maximum(y), x <= y, x != y


def logic(x, y):
    return x & y, x | y, x ^ y, ~x, x.logical_and(y), x == y, x + y, x.where(y, ~x)


def convert(x):
    return tuple(x.to(dtype) for dtype in (*FLOATS, *INTEGERS, torch.bool) if dtype != x.dtype)


def strided(x, y):
    return x.t() * 2 + y, (x[1:, ::3] - y.t()[:-1, ::3]).relu(), x + y.t()[:, :1]


# Moved data.


def joined(x, y):
    return torch.cat([x, y + 1, x.flip(0)], 0), torch.stack([x, -y], 1), torch.cat([x, y], 1) * 2


def moved(x):
    rolled = x.roll(5, 1), x.flip((0, 1)), x.tril(-2), x.triu(3)
    padded = F.pad(x, (2, 3, 1, 0)), x[::2, 7:].contiguous(), x.t().contiguous()
    return *rolled, *padded, x.view(-1)[3:-4].reshape(-1, 7) + 1, x.repeat(2, 3)


def taken(x, rows, places):
    return x[rows] + 1, x.gather(1, places) * 2, x.index_select(0, rows), x[rows, places[:, 0]]


# Reductions.


def extremes(x):
    return x.amax(1), x.amin(1), x.argmax(1), x.argmin(1), (x > x.amin(1, keepdim=True)).any(1)


def column_extremes(x):
    return x.amax(0), x.argmin(0), (x > 2).all(0)


def whole_extremes(x):
    return x.amax(), x.argmin(), (x > 2).any()


def exact_sums(x):
    return x.sum(1), x.sum(1, keepdim=True) + x, (x > 0).all(1)


def column_sums(x):
    return x.sum(0), x.abs().sum(0)


def whole_sums(x):
    return x.sum(), x.abs().sum((0, 1)) + x


def one_element(x):
    rows = x.reshape(-1, 1)
    return rows.softmax(-1), rows.log_softmax(-1), rows.sum(-1), rows.amax(-1), rows.mean(-1)


def small_numbers(dtype):
    """Each dtype has them all: what does not fit an integer has no value of its own there."""
    return torch.randint(0, 120, (ROWS, COLUMNS)).to(dtype)


def indices(*sizes):
    return torch.randint(ROWS, sizes)


def over(dtypes, fn, inputs=table, count=1, others=()):
    """{name: (fn, what makes each of its inputs)} for every dtype of the first `count` inputs."""
    return {
        f"{fn.__name__}-{dtype}".replace("torch.", ""): (
            fn,
            [partial(inputs, dtype)] * count + [*others],
        )
        for dtype in dtypes
    }


NARROW = (FP32, BF16, torch.float16)  # whose functions are all in the device headers
FLOATS = (*NARROW, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
MOVED = (FP32, torch.int64, torch.uint8)
PLACES = (partial(indices, ROWS), partial(indices, ROWS, 90))

SAME_BITS = {
    **over(FLOATS, arithmetic, count=2),
    **over((FP32, BF16), elementary, count=2),
    **over((FP32, torch.float16), special),
    **over(INTEGERS, whole_arithmetic, count=2),
    **over([torch.bool], logic, count=2),
    **over((*FLOATS, torch.uint8, torch.int64, torch.bool), convert, small_numbers),
    **over([FP32], strided, others=[partial(table, FP32, COLUMNS, ROWS)]),
    **over(MOVED, joined, count=2),
    **over(MOVED, moved),
    **over(MOVED, taken, others=PLACES),
    **over((*FLOATS, torch.uint8, torch.int64), extremes),
    **over((FP32, torch.uint8), column_extremes),
    **over((FP32, torch.int64), whole_extremes),
    **over((*FLOATS, torch.uint8, torch.int64), exact_sums, whole_numbers),
    **over((FP32, torch.float16, torch.int32), column_sums, whole_numbers),
    **over((FP32, BF16, torch.int32), whole_sums, whole_numbers),
    **over(FLOATS, one_element),
}


def make(name):
    """(function, inputs) of an entry of SAME_BITS."""
    fn, makers = SAME_BITS[name]
    return fn, tuple(maker() for maker in makers)


# Rounded as the order of sums and the libraries of the device have it.


def double_functions(x):
    return x.exp(), x.abs().log(), x.sin(), x.tanh(), F.gelu(x), x.var(1), x.softmax(0)


def numbers(dtype):
    """Of all sizes; what is not finite, and what eager's own functions do with the largest, is
    for the tests of the functions."""
    x = torch.randn(ROWS, COLUMNS) * 3
    x.view(-1)[:8] = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, 1e-40, 11.0, -30.0])
    return x.to(dtype)


def approximated(dtype):
    return exponentials, (numbers(dtype),)


def divided(x):
    """By what a loop does not change."""
    total, least = x.abs().sum(1, keepdim=True), x.abs().amin(1, keepdim=True)
    small = (x - 100).exp()
    shares = small / small.sum(1, keepdim=True)  # of sums that are subnormal
    return shares, x / total, x / 3.7, x / least, (x / x.abs().amax()).round(), total / x


def quotients(dtype):
    return divided, (numbers(dtype),)


def doubles():
    return double_functions, (torch.randn(ROWS, COLUMNS, dtype=torch.float64),)


def named_subgraphs():
    """name: (what makes function and inputs, terms of the longest sum)."""
    for name, case in CASES.items():
        if case.is_random:
            continue
        sizes = sizes_of(name)[0]
        yield name, (partial(case.build, case.dtype, **sizes), case.terms(sizes))


APPROXIMATE = {
    f"{make.__name__}-{dtype}".replace("torch.", ""): (partial(make, dtype), 1)
    for make in (approximated, quotients)
    for dtype in NARROW
}

ROUNDED = {**dict(named_subgraphs()), **APPROXIMATE, "doubles": (doubles, COLUMNS)}
