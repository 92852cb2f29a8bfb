"""The named subgraphs: functions in plain PyTorch, each with the sizes it is planned and timed at.

`planning` holds the published sizes of the name, in `dtype`.  `timing` holds sizes that move 64 to
128 MB, in fp32 unless the function itself mixes widths.  `terms` is the longest sum of an element,
for the error bound.
"""

import dataclasses
from collections.abc import Callable

import torch
import torch.nn.functional as F

BF16, FP32 = torch.bfloat16, torch.float32


@dataclasses.dataclass(frozen=True)
class Case:
    build: Callable  # (dtype, **sizes) -> (function, inputs)
    dtype: torch.dtype  # when planned
    planning: dict
    timing: dict
    timing_dtype: torch.dtype = FP32
    terms: Callable = lambda sizes: sizes["cols"]

    def planned(self):
        return self.build(self.dtype, **self.planning)

    def timed(self):
        return self.build(self.timing_dtype, **self.timing)


def softmax(dtype, rows, cols):
    return lambda x: x.softmax(-1), (torch.randn(rows, cols, dtype=dtype),)


def softmax_dim0(dtype, rows, cols):
    return lambda x: x.softmax(0), (torch.randn(rows, cols, dtype=dtype),)


def layernorm(dtype, rows, cols):
    def fn(x, weight, bias):
        return F.layer_norm(x, (cols,), weight, bias)

    shapes = ((rows, cols), (cols,), (cols,))
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def residual_rmsnorm(dtype, rows, cols):
    def fn(x, residual, weight):
        total = x + residual
        wide = total.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return wide.to(total.dtype) * weight, total

    shapes = ((rows, cols), (rows, cols), (cols,))
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def bias_gelu(dtype, rows, cols):
    inputs = torch.randn(rows, cols, dtype=dtype), torch.randn(cols, dtype=dtype)
    return lambda x, bias: F.gelu(x + bias), inputs


def masked_softmax(dtype, batch, heads, cols):
    def fn(scores, mask):
        return (scores * 0.125).masked_fill(~mask, float("-inf")).softmax(-1)

    mask = torch.arange(cols) < cols - cols // 8  # the end of each row is padding
    scores = torch.randn(batch, heads, cols, cols, dtype=dtype)
    return fn, (scores, mask.expand(batch, 1, 1, cols).contiguous())


def groupnorm_silu(dtype, batch, channels, size, groups):
    def fn(x, weight, bias):
        return F.silu(F.group_norm(x, groups, weight, bias))

    shapes = ((batch, channels, size, size), (channels,), (channels,))
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def batchnorm_relu(dtype, batch, channels, size):
    """With the statistics of the batch, which also move the running ones."""

    def fn(x, weight, bias, mean, var):
        return F.relu(F.batch_norm(x, mean, var, weight, bias, training=True, momentum=0.1))

    x = torch.randn(batch, channels, size, size, dtype=dtype)
    weight, bias = torch.randn(channels), torch.randn(channels)
    return fn, (x, weight, bias, torch.zeros(channels), torch.ones(channels))


def absmax_rows(dtype, rows, cols):
    def fn(x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return (x / scale).round().clamp(-127, 127).to(torch.int8), scale

    return fn, (torch.randn(rows, cols, dtype=dtype),)


def absmax_tensor(dtype, rows, cols):
    def fn(x):
        scale = x.abs().amax() / 127
        return (x / scale).round().clamp(-127, 127).to(torch.int8), scale

    return fn, (torch.randn(rows, cols, dtype=dtype),)


def qk_norm_rope(dtype, batch, length, heads, cols):
    def norm(x, weight):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return wide.to(x.dtype) * weight

    def rotate(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def fn(q, k, q_weight, k_weight, cos, sin):
        cos, sin = cos[:, None], sin[:, None]
        return rotate(norm(q, q_weight), cos, sin), rotate(norm(k, k_weight), cos, sin)

    shapes = ((batch, length, heads, cols),) * 2 + ((cols,),) * 2 + ((length, cols),) * 2
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def embedding_layernorm(dtype, batch, length, cols, vocabulary):
    def fn(ids, kinds, tables, weight, bias):
        words, places, types = tables
        x = words[ids] + places[:length] + types[kinds]
        return F.layer_norm(x, (cols,), weight, bias)

    ids = torch.randint(vocabulary, (batch, length))
    tables = tuple(torch.randn(rows, cols, dtype=dtype) for rows in (vocabulary, length, 2))
    weight, bias = torch.randn(cols, dtype=dtype), torch.randn(cols, dtype=dtype)
    return fn, (ids, ids % 2, tables, weight, bias)


def swiglu_gate(dtype, rows, cols):
    inputs = torch.randn(rows, cols, dtype=dtype), torch.randn(rows, cols, dtype=dtype)
    return lambda a, b: F.silu(a) * b, inputs


def sums_and_max(dtype, rows, cols):
    return lambda x: (x.sum(0), x.sum(1), x.amax()), (torch.randn(rows, cols, dtype=dtype),)


def table(rows, cols):
    return {"rows": rows, "cols": cols}


GROUPS = {"batch": 8, "channels": 320, "size": 64, "groups": 32}
HEADS = {"batch": 2, "length": 2048, "heads": 16, "cols": 128}
TOKENS = {"batch": 32, "length": 512, "cols": 768, "vocabulary": 30522}
IMAGES = {"batch": 64, "channels": 256, "size": 28}

CASES = {
    "softmax": Case(softmax, BF16, table(4096, 4096), table(5120, 2048)),
    "layernorm": Case(layernorm, FP32, table(8192, 2048), table(5120, 2048)),
    "residual_rmsnorm": Case(
        residual_rmsnorm, BF16, table(8192, 2048), table(6144, 2048), timing_dtype=BF16
    ),
    "bias_gelu": Case(
        bias_gelu, BF16, table(8192, 3072), table(3072, 3072), terms=lambda sizes: 1
    ),
    "masked_softmax": Case(
        masked_softmax,
        BF16,
        {"batch": 8, "heads": 12, "cols": 512},
        {"batch": 3, "heads": 12, "cols": 512},
    ),
    "groupnorm_silu": Case(
        groupnorm_silu, BF16, GROUPS, GROUPS,
        terms=lambda sizes: sizes["channels"] // sizes["groups"] * sizes["size"] ** 2,
    ),
    "absmax_rows": Case(absmax_rows, BF16, table(4096, 4096), table(4096, 4096)),
    "qk_norm_rope": Case(qk_norm_rope, BF16, HEADS, HEADS, timing_dtype=BF16),
    "embedding_layernorm": Case(embedding_layernorm, FP32, TOKENS, TOKENS),
    "swiglu_gate": Case(
        swiglu_gate, BF16, table(8192, 8192), table(1280, 8192), terms=lambda sizes: 1
    ),
    "softmax_dim0": Case(
        softmax_dim0, FP32, table(4096, 4096), table(5120, 2048),
        terms=lambda sizes: sizes["rows"],
    ),
    "sums_and_max": Case(
        sums_and_max, FP32, table(4096, 4096), table(4096, 4096),
        terms=lambda sizes: max(sizes["rows"], sizes["cols"]),
    ),
    "batchnorm_relu": Case(
        batchnorm_relu, FP32, IMAGES, IMAGES,
        terms=lambda sizes: sizes["batch"] * sizes["size"] ** 2,
    ),
    "absmax_tensor": Case(absmax_tensor, BF16, table(4096, 4096), table(4096, 4096)),
}  # fmt: skip

# What must be one kernel on a GPU, and nothing else.
ONE_KERNEL = (
    "softmax layernorm residual_rmsnorm bias_gelu masked_softmax groupnorm_silu absmax_rows "
    "qk_norm_rope embedding_layernorm swiglu_gate"
).split()


def tiny_ops():
    """Thirty pointwise ops on sixteen elements: nothing but overhead."""

    def fn(x, y):
        for step in range(10):
            x = (x * y + step).tanh()
        return x

    return fn, (torch.randn(16), torch.randn(16))
