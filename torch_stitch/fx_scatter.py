"""Rules of import for ops that write at indices: scatter, index_put, gradients of embeddings.

One row is a slice whose start is read from memory.  Several are combined in one of two ways, and
the results of neither depend on threads:
* Each row combines its own segment of the source, after one call has sorted the positions by row.
  Sums have the order of the source, the last of several writes wins.
* On CPUs, where the rows are few beside the positions: chunks of positions combine into rows of
  their own, and these are combined in the order of the chunks (privatisation, as for histograms).
"""

import functools
import math
import operator
from typing import NamedTuple

import torch
from torch.fx import Node

from torch_stitch import _core
from torch_stitch.fx_ops import (
    DTYPES,
    FLOATS,
    ONE,
    dtype_of,
    filled,
    find_user_op,
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
# Chunks of positions; elements that repay one more; times that the source and its index are larger
# than the rows of all chunks, which are set, combined into and read; chunks that share large work
# among threads well enough.  With 400,000 rows for 4 million positions, 4 chunks take 5.4 ms on two
# cores with AVX-512, 8 take 6.8 and 16 take 11; sorting the positions alone takes 22.
MOST_CHUNKS, CHUNK_ELEMENTS, CHUNK_SHARE, ENOUGH_CHUNKS = 64, 1 << 14, 6, 4
STRIPS = 4  # of a chunk that kernels walk side by side, where they divide it
MOST_TERMS = 16  # that a chunk adds to a row in f32, on average
# What kernels combine at indices is of a type that registers hold.
COMBINED_IN = {"f16": "f32", "bf16": "f32", "u8": "i32", "i8": "i32", "i16": "i32"}
ELEMENT_BYTES = {"f32": 4, "i32": 4, "f64": 8, "i64": 8}
MERGED = {"sum": ("sum", "add"), "prod": ("prod", "mul"), "max": ("amax", "maximum"),
          "min": ("amin", "minimum")}


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


class Segments:
    """Rows that combine what an order of the positions puts between two offsets."""

    def __init__(self, im, write, order, offsets):
        self.im, self.write, self.order, self.offsets = im, write, order, offsets

    def counts(self):
        """How many positions each row has, [rows]."""
        size = self.im.b.type(self.write.x).shape[self.write.dim]
        first, last = (self.im.b.slice(self.offsets, 0, _core.Dim(i), size, ONE) for i in range(2))
        return self.im.b.cast(self.im.b.pointwise("sub", [last, first]), "i64")

    def combine(self, x):
        op, dim, source = self.write.op, self.write.dim, self.write.source
        given = [x, source, self.order, self.offsets]
        return self.im.b.combine_rows(f"segment_{op}", given, dim)


class Chunks(NamedTuple):
    """Rows that each chunk of the positions combines for itself.  `index` [count] is checked by the
    kernels; None for `kept`, or [count]: positions that are combined."""

    im: object
    write: Write
    index: object
    kept: object
    chunks: int
    wraps: bool

    def counts(self):
        one = filled_like(self.im, "i64", 1, self.im.b.type(self.index).shape)
        return self.scatter("sum", one, 0, self.im.b.type(self.write.x).shape[self.write.dim])

    def combine(self, x):
        op, dim, source = self.write.op, self.write.dim, self.write.source
        dtype = self.im.b.type(x).dtype
        rows, count = (self.im.b.type(value).shape[dim] for value in (x, source))
        terms = self.im.b.hint(count) / rows.value()
        wide = combined_in(op, dtype, terms, self.chunks)
        made = self.scatter(op, self.im.b.cast(source, wide), dim, rows)
        made = self.im.b.pointwise(MERGED[op][1], [self.im.b.cast(x, wide), made])
        return self.im.b.cast(made, dtype)

    def scatter(self, op, source, dim, rows):
        """`source` combined into `rows` rows along `dim`, each of which begins with nothing."""
        b, counts = self.im.b, self.im.b.type(source).shape
        dtype, around = b.type(source).dtype, (len(counts) - dim - 1)
        nothing = b.full(dtype, *identity_of(op, dtype))
        if self.kept is not None:
            kept = b.reshape(self.kept, [ONE] * dim + [counts[dim]] + [ONE] * around)
            source = b.pointwise("select", [kept, source, nothing])
        index = self.index
        length, is_whole = self.chunk_length(counts[dim])
        chunked = [*counts[:dim], _core.Dim(self.chunks), length, *counts[dim + 1 :]]
        if not is_whole:
            padded = [*counts[:dim], length * _core.Dim(self.chunks), *counts[dim + 1 :]]
            zeros = [_core.Dim(0)] * len(counts)
            source = b.pad(source, zeros, padded, *identity_of(op, dtype))
            index = b.pad(index, zeros[:1], padded[dim : dim + 1], 0.0, 0)
        source = b.reshape(source, chunked)
        index = b.reshape(index, [ONE] * dim + chunked[dim : dim + 2] + [ONE] * around)
        x = b.expand(nothing, [*counts[:dim], _core.Dim(self.chunks), rows, *counts[dim + 1 :]])
        made = b.combine_rows(f"scatter_{op}", [x, source, index], dim + 1, from_end=self.wraps)
        if self.chunks == 1:
            return b.reshape(made, [*counts[:dim], rows, *counts[dim + 1 :]])
        return b.reduce(MERGED[op][0], made, [dim], dtype, False)

    def chunk_length(self, count):
        """Positions of a chunk; whether chunks of as many hold `count`, and no more."""
        if count.is_constant():
            if count.value() % self.chunks == 0:
                return _core.Dim(count.value() // self.chunks), True
            step = self.chunks * STRIPS
            return _core.Dim(-(-count.value() // step) * STRIPS), False
        rounded = count + _core.Dim(self.chunks - 1)
        return self.im.b.opaque("floor_div", rounded, _core.Dim(self.chunks)), self.chunks == 1


def filled_like(im, dtype, integer, shape):
    return im.b.expand(im.b.full(dtype, float(integer), integer), shape)


def identity_of(op, dtype):
    """As a number and an integer, of which a constant of `dtype` takes the one that fits."""
    number = identity(op, next(t for t, name in DTYPES.items() if name == dtype))
    return float(number), number if isinstance(number, int) else 0


def combined_in(op, dtype, terms, chunks):
    """In what type chunks combine rows of so many terms: in f32, one chunk, and any that adds many
    to a row, would be no more exact than eager."""
    is_rounded = dtype == "f32" and op in ("sum", "prod")
    if is_rounded and (chunks == 1 or terms > MOST_TERMS * chunks):
        return "f64"
    return COMBINED_IN.get(dtype, dtype)


def count_chunks(im, write):
    """Chunks that combine the rows of a write sooner than its positions are sorted; 0: none do."""
    b, dim = im.b, write.dim
    counts, rows = b.type(write.source).shape, b.type(write.x).shape[dim]
    if not im.on_host or write.op not in MERGED or not rows.is_constant():
        return 0
    width = math.prod(b.hint(size) for d, size in enumerate(counts) if d != dim)
    bytes_of = ELEMENT_BYTES[combined_in(write.op, b.type(write.x).dtype, 0, ENOUGH_CHUNKS)]
    moved = b.hint(counts[dim]) * (ELEMENT_BYTES["i64"] + width * bytes_of)
    made = rows.value() * width * bytes_of
    wanted = min(MOST_CHUNKS, max(1, b.hint(counts[dim]) * width // CHUNK_ELEMENTS))
    if wanted == 1:
        return int(made <= moved)
    chunks = min(wanted, moved // (CHUNK_SHARE * made))
    if chunks >= min(wanted, ENOUGH_CHUNKS):
        return 1 << (chunks.bit_length() - 1)
    return 2 * int(2 * made <= b.hint(counts[dim]) * (ELEMENT_BYTES["i64"] + bytes_of))


def split_positions(im, write, chunks, ignored=None, wraps=False):
    """The chunks of a write; where its index is `ignored`, nothing is combined."""
    index = im.b.cast(write.index, "i64")
    kept = None
    if ignored is not None:
        kept = im.b.pointwise("ne", [index, scalar(im, ignored, "i64")])
        index = im.b.pointwise("select", [kept, index, scalar(im, 0, "i64")])
    return Chunks(im, write, index, kept, chunks, wraps)


def finish_rows(im, node, rows):
    """What `rows` combine with x, or with nothing where something comes; their means."""
    write = rows.write
    op, x, keeps, dtype = write.op, write.x, write.keeps, dtype_of(node)
    if keeps and not write.is_mean:
        return rows.combine(x)
    size = im.b.type(x).shape[write.dim]
    shape = [size if d == write.dim else ONE for d in range(len(im.b.type(x).shape))]
    count = im.b.reshape(rows.counts(), shape)
    if not keeps:
        is_met = im.b.pointwise("gt", [count, scalar(im, 0, "i64")])
        x = im.b.pointwise("select", [is_met, im.b.full(dtype, *identity_of(op, dtype)), x])
    made = rows.combine(x)
    if not write.is_mean:
        return made
    count = im.b.pointwise("add", [count, scalar(im, int(keeps), "i64")])
    count = im.b.pointwise("maximum", [count, scalar(im, 1, "i64")])
    return im.b.pointwise("div", [made, im.b.cast(count, dtype)])


def combine_rows(im, node, write, **how):
    """x with the rows of `source` along dim combined into those that the index [count] names.

    `how`: wraps, where negative indices count from the end; ignored, an index of no row."""
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
        start, wraps = im.b.reshape(index, [ONE] * len(shape)), how.get("wraps", False)
        if op == "sum":
            kept = im.b.index(x, [index], [dim], from_end=wraps)
            source = im.b.pointwise("add", [kept, source])
        return im.b.slice_scatter(x, source, dim, start, from_end=wraps)
    # Eager's own call writes less than all rows of an argument.
    if find_in_place_form(node) and im.b.hint(counts[dim]) < im.b.hint(shape[dim]):
        return NotImplemented
    write = write._replace(x=x, source=source)
    chunks = count_chunks(im, write)
    if chunks:
        return finish_rows(im, node, split_positions(im, write, chunks, **how))
    return finish_rows(im, node, Segments(im, write, *sort_rows(im, index, shape[dim], **how)))


@rule("aten.select_scatter.default")
def select_scatter(im, node, x, source, dim, index):
    start = im.dim(start_of(index, result_of(node).shape[dim]))
    shape = shape_of(im, node)
    if im.b.type(source).shape != shape[:dim] + shape[dim:][1:]:
        return NotImplemented  # which raises as in eager
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
    wraps = find_user_op(node)._opname not in ("index_add", "index_copy")
    return combine_rows(im, node, Write(op, x, dim, index, source), wraps=wraps)


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
        kept = im.b.gather(x, index, dim, from_end=False)
        source = im.b.pointwise("add", [kept, source])
    return im.b.slice_scatter(x, source, dim, index, from_end=False)


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
