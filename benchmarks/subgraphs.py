"""The named subgraphs in plain PyTorch: each is a function of a dtype and sizes.

Each answers with a function and its inputs.  `benchmarks.cases` has the sizes.
"""

import torch
import torch.nn.functional as F
from torch.optim.adamw import adamw as torch_adamw


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


def mean_var_max(dtype, rows, cols):
    return lambda x: (x.mean(0), x.var(1), x.amax()), (torch.randn(rows, cols, dtype=dtype),)


def layernorm_backward(dtype, rows, cols):
    """The gradients of the input, the weight and the bias."""

    def fn(grad, x, mean, rstd, weight, bias):
        needed = [True, True, True]
        return torch.ops.aten.native_layer_norm_backward(
            grad, x, (cols,), mean, rstd, weight, bias, needed
        )

    grad, x = (torch.randn(rows, cols, dtype=dtype) for _ in range(2))
    mean, rstd = x.mean(-1, keepdim=True), (x.var(-1, keepdim=True) + 1e-5).rsqrt()
    return fn, (grad, x, mean, rstd, torch.randn(cols, dtype=dtype), torch.randn(cols, dtype=dtype))


def residual_layernorm(dtype, rows, cols):
    def fn(x, residual, weight, bias):
        total = x + residual
        return F.layer_norm(total, (cols,), weight, bias), total

    shapes = ((rows, cols), (rows, cols), (cols,), (cols,))
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def bias_dropout_residual_layernorm(dtype, rows, cols):
    def fn(x, bias, residual, weight, shift):
        total = F.dropout(x + bias, 0.1, training=True) + residual
        return F.layer_norm(total, (cols,), weight, shift)

    shapes = ((rows, cols), (cols,), (rows, cols), (cols,), (cols,))
    return fn, tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def masked_softmax_dropout(dtype, batch, heads, cols):
    masked, inputs = masked_softmax(dtype, batch, heads, cols)
    return lambda scores, mask: F.dropout(masked(scores, mask), 0.1, training=True), inputs


def log_softmax_nll(dtype, rows, cols):
    inputs = torch.randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,))
    return lambda x, target: F.nll_loss(x.log_softmax(-1), target), inputs


def cross_entropy(dtype, rows, cols):
    """The loss, and the gradient of the logits written out."""

    def fn(logits, target):
        wide = logits.float()
        is_target = torch.arange(cols, device=logits.device) == target[:, None]
        gradient = (wide.softmax(-1) - is_target.to(wide.dtype)) / rows
        return F.cross_entropy(wide, target), gradient.to(logits.dtype)

    return fn, (torch.randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,)))


def row_entropy(dtype, rows, cols):
    def fn(x):
        return -(x.softmax(-1) * x.log_softmax(-1)).sum(-1)

    return fn, (torch.randn(rows, cols, dtype=dtype),)


def row_sums(dtype, rows, cols):
    return lambda x: x.sum(-1), (torch.randn(rows, cols, dtype=dtype),)


def swiglu_ffn(dtype, rows, cols, hidden):
    def fn(x, gate, up, down):
        return (F.silu(x @ gate) * (x @ up)) @ down

    x = torch.randn(rows, cols, dtype=dtype)
    shapes = ((cols, hidden), (cols, hidden), (hidden, cols))
    return fn, (x, *(torch.randn(shape, dtype=dtype) / shape[0] ** 0.5 for shape in shapes))


def fs18_attention(dtype, batch, heads, length, cols):
    """Softmax of scores, then the batched product with values."""
    scores = torch.randn(batch, heads, length, length, dtype=dtype)
    values = torch.randn(batch, heads, length, cols, dtype=dtype)
    return lambda scores, values: scores.softmax(-1) @ values, (scores, values)


def astitch_figure7(dtype, rows, cols):
    """Two reductions with a power between them, and what is spread over the rows again."""

    def fn(first, second, third):
        power = ((first + second[:, None]).sum(-1) / second).pow(3)[:, None]
        return (third / power).sum(-1, keepdim=True) * power.expand(rows, cols)

    shapes = ((rows, cols), (rows,), (rows, cols))
    return fn, tuple(torch.rand(shape, dtype=dtype) + 0.5 for shape in shapes)


def segment_softmax(dtype, edges, nodes, is_sorted):
    """Scores of edges become weights that sum to one at each node."""

    def fn(scores, ends):
        lowest = torch.full((nodes,), float("-inf"), dtype=scores.dtype, device=scores.device)
        top = lowest.scatter_reduce(0, ends, scores, "amax")
        weights = (scores - top[ends]).exp()
        total = torch.zeros_like(top).scatter_add(0, ends, weights)
        return weights / total[ends]

    ends = torch.randint(nodes, (edges,))
    return fn, (torch.randn(edges, dtype=dtype), ends.sort().values if is_sorted else ends)


def transpose_reduce_transpose(dtype, batch, cols, width):
    """The dimension in the middle is normalised."""

    def fn(x):
        return F.layer_norm(x.permute(0, 2, 1), (cols,)).permute(0, 2, 1)

    return fn, (torch.randn(batch, cols, width, dtype=dtype),)


def adamw_foreach(dtype, tensors, rows, cols):
    """One step of AdamW, in place: all that it changes are its inputs."""

    def fn(params, grads, means, squares, step):
        torch._foreach_mul_(params, 1 - 1e-5)
        torch._foreach_lerp_(means, grads, 0.1)
        torch._foreach_mul_(squares, 0.999)
        torch._foreach_addcmul_(squares, grads, grads, 0.001)
        step += 1
        scale = torch._foreach_sqrt(squares)
        torch._foreach_div_(scale, (1 - 0.999**step).sqrt())
        torch._foreach_add_(scale, 1e-8)
        torch._foreach_div_(scale, 1e-3 / (1 - 0.9**step))
        torch._foreach_addcdiv_(params, means, scale, value=-1)

    def make(random):
        return [random(rows, cols, dtype=dtype) for _ in range(tensors)]

    params, grads, means = (make(torch.randn) for _ in range(3))
    return fn, (params, grads, means, make(torch.rand), torch.ones(()))


# Weights and biases that the layers of a model repeat.
LAYER_SHAPES = ((1024, 1024), (1024,), (4096, 1024), (4096,), (1024, 4096))


def adamw_of_layers(dtype, tensors, *shapes):
    """The step that torch.optim.AdamW compiles to on a GPU, a count of steps for each tensor.

    The tensors have these shapes by turns.
    """
    rates = {"beta1": 0.9, "beta2": 0.999, "lr": 1e-3, "weight_decay": 1e-2, "eps": 1e-8}
    switches = dict.fromkeys(("amsgrad", "maximize", "differentiable"), False)

    def fn(*state):
        on_gpu = torch.compiler.is_compiling()
        torch_adamw(*state[:4], [], state[4], capturable=on_gpu, **rates, **switches)

    kinds = [shapes[i % len(shapes)] for i in range(tensors)]
    counts = [torch.full((), 1.0 + i % 5) for i in range(tensors)]
    return fn, (*([torch.rand(shape, dtype=dtype) for shape in kinds] for _ in range(4)), counts)
