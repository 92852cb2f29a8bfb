"""The named subgraphs: functions of benchmarks.subgraphs, each with the sizes it is measured at.

`planning` holds the published sizes of the name, in `dtype`.  `timing` holds sizes that move 64 to
128 MB, in fp32 unless the function itself mixes widths, and `medium` such that move about 16 MB.
`terms` is the longest sum of an element, for the error bound.
"""

import dataclasses
from collections.abc import Callable

import torch

from benchmarks import subgraphs

BF16, FP32 = torch.bfloat16, torch.float32


@dataclasses.dataclass(frozen=True)
class Case:
    build: Callable  # (dtype, **sizes) -> (function, inputs)
    dtype: torch.dtype  # when planned
    planning: dict
    timing: dict
    medium: dict
    timing_dtype: torch.dtype = FP32
    terms: Callable = lambda sizes: sizes["cols"]
    is_random: bool = False  # draws random numbers
    is_irregular: bool = False  # gathers or scatters at indices that are data
    is_ragged: bool = False  # its rows are no multiple of 16 bytes

    def planned(self):
        return self.build(self.dtype, **self.planning)

    def timed(self):
        return self.build(self.timing_dtype, **self.timing)

    def of_medium_size(self):
        return self.build(self.dtype, **self.medium)


def table(rows, cols):
    return {"rows": rows, "cols": cols}


def scores(batch, cols=512):
    return {"batch": batch, "heads": 12, "cols": cols}


def maps(batch, channels, size, groups):
    return {"batch": batch, "channels": channels, "size": size, "groups": groups}


def heads(length):
    return {"batch": 2, "length": length, "heads": 16, "cols": 128}


def tokens(batch):
    return {"batch": batch, "length": 512, "cols": 768, "vocabulary": 30522}


def images(batch):
    return {"batch": batch, "channels": 256, "size": 28}


def feed_forward(rows, cols, hidden):
    return {"rows": rows, "cols": cols, "hidden": hidden}


def attention(batch):
    return {"batch": batch, "heads": 8, "length": 17, "cols": 128}


def edges(count, is_sorted):
    return {"edges": count, "nodes": count // 10, "is_sorted": is_sorted}


def parameters(tensors, rows):
    return {"tensors": tensors, "rows": rows, "cols": 1024}


def one(sizes):
    return 1


def group(sizes):
    return sizes["channels"] // sizes["groups"] * sizes["size"] ** 2


def degree(sizes):
    """More edges than that never end at one node of some ten on average."""
    return 64


CASES = {
    "softmax": Case(
        subgraphs.softmax, BF16, table(4096, 4096), table(5120, 2048), table(1024, 4096)
    ),
    "layernorm": Case(
        subgraphs.layernorm, FP32, table(8192, 2048), table(5120, 2048), table(1024, 2048)
    ),
    "layernorm_backward": Case(
        subgraphs.layernorm_backward, FP32, table(8192, 2048), table(4096, 2048),
        table(704, 2048), terms=lambda sizes: max(sizes["rows"], sizes["cols"]),
    ),
    "residual_layernorm": Case(
        subgraphs.residual_layernorm, FP32, table(8192, 2048), table(3072, 2048), table(512, 2048)
    ),
    "residual_rmsnorm": Case(
        subgraphs.residual_rmsnorm, BF16, table(8192, 2048), table(6144, 2048), table(1024, 2048),
        timing_dtype=BF16,
    ),
    "bias_gelu": Case(
        subgraphs.bias_gelu, BF16, table(8192, 3072), table(3072, 3072), table(1344, 3072),
        terms=one,
    ),
    "bias_dropout_residual_layernorm": Case(
        subgraphs.bias_dropout_residual_layernorm, BF16, table(8192, 1024), table(8192, 1024),
        table(2688, 1024), is_random=True,
    ),
    "masked_softmax": Case(subgraphs.masked_softmax, BF16, scores(8), scores(3), scores(1)),
    "masked_softmax_dropout": Case(
        subgraphs.masked_softmax_dropout, BF16, scores(8), scores(3), scores(1), is_random=True
    ),
    "groupnorm_silu": Case(
        subgraphs.groupnorm_silu, BF16, maps(8, 320, 64, 32), maps(8, 320, 64, 32),
        maps(3, 320, 64, 32), terms=group,
    ),
    "groupnorm_silu_large": Case(
        subgraphs.groupnorm_silu, BF16, maps(8, 128, 512, 32), maps(1, 48, 512, 12),
        maps(1, 16, 512, 4), terms=group,
    ),
    "batchnorm_relu": Case(
        subgraphs.batchnorm_relu, FP32, images(64), images(64), images(10),
        terms=lambda sizes: sizes["batch"] * sizes["size"] ** 2,
    ),
    "cross_entropy": Case(
        subgraphs.cross_entropy, BF16, table(8192, 32000), table(384, 32000), table(128, 32000)
    ),
    "log_softmax_nll": Case(
        subgraphs.log_softmax_nll, BF16, table(8192, 32000), table(640, 32000), table(256, 32000)
    ),
    "swiglu_ffn": Case(
        subgraphs.swiglu_ffn, BF16, feed_forward(4096, 2048, 5632),
        feed_forward(4096, 512, 5632), feed_forward(1024, 512, 2048),
        terms=lambda sizes: sizes["hidden"],
    ),
    "swiglu_gate": Case(
        subgraphs.swiglu_gate, BF16, table(8192, 8192), table(1280, 8192), table(320, 8192),
        terms=one,
    ),
    "qk_norm_rope": Case(
        subgraphs.qk_norm_rope, BF16, heads(2048), heads(2048), heads(480), timing_dtype=BF16
    ),
    "embedding_layernorm": Case(
        subgraphs.embedding_layernorm, FP32, tokens(32), tokens(32), tokens(5), is_irregular=True
    ),
    "adamw_foreach": Case(
        subgraphs.adamw_foreach, FP32, parameters(20, 1024), parameters(20, 256),
        parameters(20, 28), terms=one,
    ),
    "absmax_rows": Case(
        subgraphs.absmax_rows, BF16, table(4096, 4096), table(4096, 4096), table(1344, 4096)
    ),
    "absmax_tensor": Case(
        subgraphs.absmax_tensor, BF16, table(4096, 4096), table(4096, 4096), table(1344, 4096)
    ),
    "sums_and_max": Case(
        subgraphs.sums_and_max, FP32, table(4096, 4096), table(4096, 4096), table(1024, 4096),
        terms=lambda sizes: max(sizes["rows"], sizes["cols"]),
    ),
    "mean_var_max": Case(
        subgraphs.mean_var_max, FP32, table(4096, 4096), table(4096, 4096), table(1024, 4096),
        terms=lambda sizes: max(sizes["rows"], sizes["cols"]),
    ),
    "softmax_dim0": Case(
        subgraphs.softmax_dim0, FP32, table(4096, 4096), table(5120, 2048), table(1024, 2048),
        terms=lambda sizes: sizes["rows"],
    ),
    "long_row_entropy": Case(
        subgraphs.row_entropy, FP32, table(64, 131072), table(160, 131072), table(32, 131072)
    ),
    "few_long_rows": Case(
        subgraphs.softmax, FP32, table(4, 1048576), table(12, 1048576), table(2, 1048576)
    ),
    "reduce_750000x32": Case(
        subgraphs.row_sums, FP32, table(750000, 32), table(750000, 32), table(125000, 32)
    ),
    "reduce_64x30000": Case(
        subgraphs.row_sums, FP32, table(64, 30000), table(640, 30000), table(128, 30000)
    ),
    "fs18_attention": Case(
        subgraphs.fs18_attention, FP32, attention(64), attention(640), attention(112),
        is_ragged=True,
    ),
    "astitch_figure7": Case(
        subgraphs.astitch_figure7, FP32, table(1024, 512), table(16384, 512), table(2688, 512)
    ),
    "segment_softmax_sorted": Case(
        subgraphs.segment_softmax, FP32, edges(1_000_000, True), edges(4_000_000, True),
        edges(1_000_000, True), terms=degree, is_irregular=True,
    ),
    "segment_softmax_unsorted": Case(
        subgraphs.segment_softmax, FP32, edges(1_000_000, False), edges(4_000_000, False),
        edges(1_000_000, False), terms=degree, is_irregular=True,
    ),
    "transpose_reduce_transpose": Case(
        subgraphs.transpose_reduce_transpose, FP32, {"batch": 64, "cols": 512, "width": 256},
        {"batch": 64, "cols": 512, "width": 256}, {"batch": 16, "cols": 512, "width": 256},
    ),
}  # fmt: skip

# What must be one kernel on a GPU, and nothing else.
ONE_KERNEL = (
    "softmax layernorm residual_rmsnorm bias_gelu masked_softmax groupnorm_silu absmax_rows "
    "qk_norm_rope embedding_layernorm swiglu_gate"
).split()

# What one kernel covers where its stages may wait for each other.
ONE_STITCHED_KERNEL = (
    *ONE_KERNEL,
    *(
        "layernorm_backward cross_entropy batchnorm_relu sums_and_max mean_var_max absmax_tensor "
        "softmax_dim0 long_row_entropy few_long_rows adamw_foreach masked_softmax_dropout"
    ).split(),
)


def tiny_ops():
    """Thirty pointwise ops on sixteen elements: nothing but overhead."""

    def fn(x, y):
        for step in range(10):
            x = (x * y + step).tanh()
        return x

    return fn, (torch.randn(16), torch.randn(16))
