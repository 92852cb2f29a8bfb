"""Ops that write at indices become puts, which name eager's call as well: the core chooses."""

import torch

from torch_stitch import _core, fx_ops
from torch_stitch.fx_ops import as_rows, dtype_of, filled, result_of, rule, scalar, shape_of

RULES = fx_ops.RULES  # with these
ROWS = {"index_add": "sum", "index_copy": "last", "index_reduce": None}
COMBINED = {"amax": "max", "amin": "min", "add": "sum", "multiply": "prod"}


def put(im, node, op, operands, dim, wraps=False, keeps=True, ignored=-1):
    """x with what the source holds put where the index says; operands: x, source, index.

    The index is [count] along dim, or of the source's shape.  `wraps`: negative ones count from
    the end; `keeps`: x counts where something comes; `ignored`: the index of no row."""
    dtype, result = dtype_of(node), result_of(node)
    x, source = (im.b.cast(value, dtype) for value in operands[:2])
    empty = any(0 in im.b.type(value).shape for value in (x, source))
    is_logic = dtype == "bool" and op != "last"
    is_whole = op == "mean" and dtype not in fx_ops.FLOATS
    if empty or is_logic or is_whole or fx_ops.overlaps(result):
        return NotImplemented
    name, row, call_operands = im.call(node, [])
    inputs = [*as_rows(im, x, source, operands[2]), *call_operands]
    how, kind = [dim, int(wraps), int(keeps), ignored], im.type_of(torch.atleast_1d(result))
    made = im.b.put(f"put_{op}", inputs, how, name, row, kind)
    im.note_in_place(node, made)
    return made if result.dim() else im.b.reshape(made, [])


@rule("index_put")
def index_put(im, node, x, indices, values, accumulate=False):
    """One indexed dimension, or a mask."""
    given = [(dim, i) for dim, i in enumerate(indices) if i is not None]
    if len(given) == 1 and im.b.type(given[0][1]).dtype == "bool" and not accumulate:
        x, values = (im.b.cast(value, dtype_of(node)) for value in (x, values))
        return im.b.put_masked(x, *given[0], values)
    if len(given) != 1 or im.b.type(given[0][1]).dtype not in ("i32", "i64"):
        return NotImplemented
    (dim, index), shape = given[0], shape_of(im, node)
    values = im.b.expand(values, [*shape[:dim], *im.b.type(index).shape, *shape[dim + 1 :]])
    shape[dim] = im.dim(node.args[1][dim].meta["val"].numel())
    index, source = im.b.reshape(index, [shape[dim]]), im.b.reshape(values, shape)
    return put(im, node, "sum" if accumulate else "last", (x, source, index), dim, wraps=True)


@rule("embedding_dense_backward")
def embedding_gradient(im, node, grad, indices, rows, padding, by_frequency):
    if by_frequency:
        return NotImplemented
    count = im.dim(node.args[1].meta["val"].numel())
    index = im.b.reshape(indices, [count])
    source = im.b.reshape(grad, [count, shape_of(im, node)[1]])
    return put(im, node, "sum", (filled(im, node, 0), source, index), 0, ignored=max(padding, -1))


@rule("scatter scatter_add scatter_reduce")
def scatter(im, node, x, dim, index, source, reduce="last", include_self=True):
    """What the index has no place for is not read."""
    places, result = im.b.type(index).shape, result_of(node)
    if len(places) != result.dim() or 0 in places:
        return NotImplemented
    if not isinstance(source, _core.NodeId):
        source = im.b.expand(scalar(im, source, dtype_of(node)), places)
    for d, size in enumerate(places):
        source = im.b.slice(source, d, 0, size, 1)
    op = "sum" if node.target._opname == "scatter_add" else COMBINED.get(reduce, reduce)
    return put(im, node, op, (x, source, index), dim % max(1, result.dim()), keeps=include_self)


@rule("index_add index_copy index_reduce")
def put_rows(im, node, x, dim, index, source, reduce=None, include_self=True, alpha=1):
    shape, given = shape_of(im, node), im.b.type(source)
    dim %= max(1, len(shape))
    shape[dim : dim + 1] = [im.dim(node.args[2].meta["val"].numel())] * bool(shape)
    if given.shape != shape or given.dtype != dtype_of(node):
        return NotImplemented  # which raises as in eager
    op = ROWS[node.target._opname] or COMBINED.get(reduce, reduce)
    source = source if alpha == 1 else fx_ops.pointwise(im, node, "mul", source, alpha)
    wraps = fx_ops.find_user_op(node)._opname == "index_fill"
    return put(im, node, op, (x, source, index), dim, wraps, include_self)
