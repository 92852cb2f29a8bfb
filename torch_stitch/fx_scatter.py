"""Rules of import for ops that write at indices: scatter, index_put, gradients of embeddings.

One row is a slice whose start is read from memory.  Of several, each row combines its own segment
of the source, after one call has sorted the positions by row: the results do not depend on threads,
sums have the order of the source, the last of several writes wins.
"""

import functools
import math
import operator
from typing import NamedTuple

import torch
from torch.fx import Node

from torch_stitch import _core
from torch_stitch.fx_ops import (
    FLOATS,
    ONE,
    dtype_of,
    filled,
    result_of,
    rule,
    scalar,
    shape_of,
    start_of,
)

aten, SEGMENTS = torch.ops.aten, torch.ops.torch_stitch.segments.default
COMBINED = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "max", "amin": "min"}
# As many rows for each position as a call that sorts them all repays.
MOST_ROWS = 4


class Write(NamedTuple):
    """What goes where: `index` has the rank of `source`, or is a list of rows [count]."""

    op: str  # of a segment
    x: object
    dim: int
    index: object
    source: object
    keeps: bool = True  # rows that something comes to count what x holds there
    is_mean: bool = False


def find_in_place_form(node):
    """What writes its first operand: for an op whose result only goes back into an argument."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node) or first.op != "placeholder" or len(first.users) != 2:
        return None
    stored = any(n.target is aten.copy_.default and n.args[1] is node for n in first.users)
    same = stored and node.meta["val"].stride() == first.meta["val"].stride()
    if not same or not str(node.target).startswith("aten."):
        return None
    packet = getattr(aten, str(node.target).split(".")[1] + "_", None)
    return getattr(packet, node.target._overloadname, None)


def sort_rows(im, index, size, ignored=None, wraps=False):
    """The order and the offsets of the segments of an index [count], among `size` rows."""
    key = (index, size, ignored, wraps)
    if key not in im.sorted:
        count = im.b.type(index).shape[0]
        narrow = all(n.is_constant() and n.value() < 2**31 for n in (count, size))
        dtype = "i32" if narrow else "i64"
        types = [_core.TensorType(dtype, [n], [ONE]) for n in (count, size + ONE)]
        given = _core.Operand(0), size, ignored, wraps, narrow
        row = im.calls.add_call("torch_stitch.segments.default", SEGMENTS, given, {})
        made = im.b.library("torch_stitch.segments.default", row, [index], types, True)
        im.sorted[key] = tuple(made)
    return im.sorted[key]


def identity(op, dtype):
    """What changes nothing where `op` combines it with others."""
    if op in ("sum", "prod"):
        return int(op == "prod")
    if dtype.is_floating_point:
        return -math.inf if op == "max" else math.inf
    return getattr(torch.iinfo(dtype), "min" if op == "max" else "max")


def combine_segments(im, node, write, order, offsets):
    """The segments with x, or with nothing where something comes; their means."""
    op, x, dim, _, source, keeps, is_mean = write
    size, dtype = im.b.type(x).shape[dim], dtype_of(node)
    first, last = (im.b.slice(offsets, 0, _core.Dim(i), size, ONE) for i in range(2))
    shape = [size if d == dim else ONE for d in range(len(im.b.type(x).shape))]
    count = im.b.cast(im.b.reshape(im.b.pointwise("sub", [last, first]), shape), "i64")
    if not keeps:
        is_met = im.b.pointwise("gt", [count, scalar(im, 0, "i64")])
        number = identity(op, result_of(node).dtype)
        nothing = im.b.full(dtype, float(number), number if isinstance(number, int) else 0)
        x = im.b.pointwise("select", [is_met, nothing, x])
    made = im.b.segments(f"segment_{op}", [x, source, order, offsets], dim)
    if not is_mean:
        return made
    count = im.b.pointwise("add", [count, scalar(im, int(keeps), "i64")])
    count = im.b.pointwise("maximum", [count, scalar(im, 1, "i64")])
    return im.b.pointwise("div", [made, im.b.cast(count, dtype)])


def combine_rows(im, node, write, **how):
    """x with the rows of `source` along dim combined into those that the index [count] names."""
    op, dim, index = write.op, write.dim, write.index
    x, source = (im.b.cast(value, dtype_of(node)) for value in (write.x, write.source))
    shape, counts = im.b.type(x).shape, im.b.type(source).shape
    is_logic = dtype_of(node) == "bool" and op != "last"
    if not shape or is_logic or any(size == _core.Dim(0) for size in (*shape, *counts)):
        return NotImplemented
    if write.is_mean and dtype_of(node) not in FLOATS:
        return NotImplemented
    is_plain = write.keeps and not write.is_mean and "ignored" not in how
    if counts[dim] == ONE and op in ("sum", "last") and is_plain:
        start = im.b.reshape(index, [ONE] * len(shape))
        if op == "sum":
            source = im.b.pointwise("add", [im.b.index(x, [index], [dim]), source])
        return im.b.slice_scatter(x, source, dim, start)
    # Eager's own call writes less than all rows of an argument.
    if find_in_place_form(node) and im.b.hint(counts[dim]) < im.b.hint(shape[dim]):
        return NotImplemented
    segments = sort_rows(im, index, shape[dim], **how)
    return combine_segments(im, node, write._replace(x=x, source=source), *segments)


@rule("aten.select_scatter.default")
def select_scatter(im, node, x, source, dim, index):
    start = im.dim(start_of(index, result_of(node).shape[dim]))
    shape = shape_of(im, node)
    shape[dim] = ONE
    row = im.b.reshape(im.b.cast(source, dtype_of(node)), shape)
    return im.b.slice_scatter(x, row, dim, start, ONE)


@rule("aten.index_put.default")
def index_put(im, node, x, indices, values, accumulate=False):
    """One indexed dimension."""
    given = [(dim, i) for dim, i in enumerate(indices) if i is not None]
    if len(given) != 1 or im.b.type(given[0][1]).dtype not in ("i32", "i64"):
        return NotImplemented
    (dim, index), shape = given[0], shape_of(im, node)
    values = im.b.expand(values, [*shape[:dim], *im.b.type(index).shape, *shape[dim + 1 :]])
    shape[dim] = im.dim(node.args[1][dim].meta["val"].numel())
    index, source = im.b.reshape(index, [shape[dim]]), im.b.reshape(values, shape)
    op = "sum" if accumulate else "last"
    return combine_rows(im, node, Write(op, x, dim, index, source), wraps=True)


@rule("aten.embedding_dense_backward.default")
def embedding_gradient(im, node, grad, indices, rows, padding, by_frequency):
    if by_frequency:
        return NotImplemented
    count = im.dim(node.args[1].meta["val"].numel())
    index = im.b.reshape(indices, [count])
    source = im.b.reshape(grad, [count, shape_of(im, node)[1]])
    write = Write("sum", filled(im, node, 0), 0, index, source)
    return combine_rows(im, node, write, **({"ignored": padding} if padding >= 0 else {}))


def row_index(im, node, write):
    """The index [count] that all rows share, where there is one: its other strides are 0."""
    given, index = node.args[2].meta["val"], write.index
    others = [d for d in range(given.dim()) if d != write.dim]
    if any(given.shape[d] != 1 and given.stride(d) != 0 for d in others):
        return None
    for d in others:
        index = im.b.slice(index, d, _core.Dim(0), ONE, ONE)
    return im.b.reshape(index, [im.dim(given.shape[write.dim])])


def one_place(im, node, write):
    """Scatter with one index for each row along the other dimensions."""
    op, x, dim, index, source = write[:5]
    source = im.b.cast(source, dtype_of(node))
    if op == "sum":
        source = im.b.pointwise("add", [im.b.gather(x, index, dim), source])
    return im.b.slice_scatter(x, source, dim, index)


def number_elements(im, dim, index, shape):
    """Which element of a tensor of `shape` each element of an index names; -1 for none."""
    counts, total = im.b.type(index).shape, ONE
    place = scalar(im, 0, "i64")
    index = im.b.cast(index, "i64")
    for d in reversed(range(len(shape))):
        line = im.b.iota("i64", counts[d], _core.Dim(0), ONE)
        line = im.b.reshape(line, [counts[e] if e == d else ONE for e in range(len(shape))])
        steps = [index if d == dim else line, im.b.size_value("i64", total)]
        place = im.b.pointwise("add", [place, im.b.pointwise("mul", steps)])
        total = total * shape[d]
    bounds = scalar(im, 0, "i64"), im.b.size_value("i64", shape[dim])
    inside = [im.b.pointwise(op, [index, bound]) for op, bound in zip(("ge", "lt"), bounds)]
    inside = im.b.pointwise("logical_and", inside)
    return im.b.pointwise("select", [inside, place, scalar(im, -1, "i64")]), total


def scatter_elements(im, node, write):
    """Scatter in which every element has an index of its own."""
    shape, counts = im.b.type(write.x).shape, im.b.type(write.index).shape
    places, total = number_elements(im, write.dim, write.index, shape)
    count = functools.reduce(operator.mul, counts, ONE)
    if im.b.hint(total) > MOST_ROWS * im.b.hint(count):
        return NotImplemented
    places, source = (im.b.reshape(value, [count]) for value in (places, write.source))
    flat = write._replace(x=im.b.reshape(write.x, [total]), dim=0, index=places, source=source)
    made = combine_rows(im, node, flat)
    return made if made is NotImplemented else im.b.reshape(made, shape)


def scatter_into(im, node, write):
    """What any scatter does, by the shape of its index."""
    given, result = node.args[2].meta["val"], result_of(node)
    if not result.dim() or given.dim() != result.dim() or not given.numel():
        return NotImplemented
    dim, source = write.dim % result.dim(), write.source
    for d, size in enumerate(given.shape):
        if im.b.type(source).shape[d] != im.dim(size):
            source = im.b.slice(source, d, _core.Dim(0), im.dim(size), ONE)
    write = write._replace(dim=dim, source=source)
    if all(given.shape[d] == result.shape[d] for d in range(given.dim()) if d != dim):
        rows = row_index(im, node, write)
        if rows is not None:
            return combine_rows(im, node, write._replace(index=rows))
        is_plain = write.keeps and not write.is_mean and dtype_of(node) != "bool"
        if given.shape[dim] == 1 and write.op in ("sum", "last") and is_plain:
            return one_place(im, node, write)
    return scatter_elements(im, node, write)


@rule("aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default")
def scatter(im, node, x, dim, index, source):
    if not isinstance(source, _core.NodeId):
        source = im.b.expand(scalar(im, source, dtype_of(node)), im.b.type(index).shape)
    op = "sum" if node.target._opname == "scatter_add" else "last"
    return scatter_into(im, node, Write(op, x, dim, index, source))


@rule("aten.scatter_reduce.two", "aten.index_reduce.default")
def scatter_reduce(im, node, x, dim, index, source, reduce, include_self=True):
    combine = combine_rows if node.target._opname == "index_reduce" else scatter_into
    dim %= max(1, result_of(node).dim())
    how = include_self, reduce == "mean"
    return combine(im, node, Write(COMBINED[reduce], x, dim, index, source, *how))
