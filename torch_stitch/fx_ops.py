"""Rules of import: how one aten op becomes core nodes.

They are methods of Rules, rows of ROWS, and the `aten` column of ops.def.  What has none, or one
that answers NotImplemented, is a library call, but for what decompositions.py takes apart.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import guard_or_true

from torch_stitch._core import Dim, NodeId, ops
from torch_stitch.fx_calls import KNOWN, Calls, dtype_of, overlaps, result_of, storage_of
from torch_stitch.fx_numbers import DATA_HINT, DTYPES, NARROW, SYMBOLIC, Number, Size, whole

FLOATS, INDICES = (*NARROW, "f32", "f64"), ("i32", "i64")
# On bools there is logic instead of arithmetic and bits.
BOOL_FORMS = {"bitwise_xor": "logical_xor", "bitwise_not": "logical_not", "amax": "any"}
BOOL_FORMS |= dict.fromkeys(("add", "maximum", "bitwise_or"), "logical_or") | {"amin": "all"}
BOOL_FORMS |= dict.fromkeys(("mul", "minimum", "bitwise_and"), "logical_and")
# What eager computes with numbers as they are, by whether on a CPU: there if they come second.
EXACT = {True: "mul div div_floor div_trunc", False: "add sub mul div div_floor div_trunc"}
DIVIDES = {None: "div", "floor": "div_floor", "trunc": "div_trunc"}
ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
MOST_IN_WINDOW = 25  # elements of a pooling: each is read that often
COMBINED = {"amax": "max", "amin": "min", "add": "sum", "multiply": "prod"}
PUTS = {"index_add": "sum", "index_copy": "last", "scatter_add": "sum"}


def find_user_op(node: Node) -> Any:
    """What was taken apart into an op that may find an index out of range, else the op itself."""
    indexes = getattr(node.target, "_opname", "") in ("gather", "index", "index_copy", "index_put")
    return (node.meta.get("original_aten") if indexes else None) or node.target


def start_of(start: Size | None, size: Size) -> Size:
    """Where a slice begins, as Python counts: negative from the end, clamped to the extent."""
    if start is None or (isinstance(start, int) and start == 0):
        return 0
    start = start + size * torch.sym_max(torch.sym_min(-start, 1), 0)
    return torch.sym_min(torch.sym_max(start, 0), size)


def count_between(start: Size, end: Size | None, step: Size, size: Size) -> Size:
    """How many elements a slice takes that begins at `start`, as start_of has it."""
    end = start_of(size if end is None else end, size)
    return torch.sym_max(end - start + step - 1, 0) // step


class Rules(Calls):
    """aten_NAME is the rule of an op: it takes the node and what the op does, tensors as core
    values and all else as in the FX graph."""

    def shape_of(self, node: Node) -> list[Dim]:
        return self.dims(result_of(node).shape)

    def shape(self, x: NodeId) -> list[Dim]:
        return self.b.type(x).shape

    def filled(self, node: Node, number: NodeId | Number) -> NodeId:
        """A number, or the elements of another value, wherever the result has elements."""
        return self.b.expand(self.scalar(number, dtype_of(node)), self.shape_of(node))

    def pointwise(self, node: Node, op: str, *operands: Any, dtype: str | None = None) -> NodeId:
        """`op` on operands of one dtype (the result's, unless given), cast to the result's."""
        dtype, on_cpu, last = dtype or dtype_of(node), self.all_on_cpu, operands[-1]
        op = BOOL_FORMS.get(op, op) if dtype == "bool" else op
        kept = range(on_cpu, 2) if op in EXACT[on_cpu].split() else ()  # which operands stay exact
        if on_cpu and kept and isinstance(last, NodeId) and dtype in NARROW:
            held = self.b.type(last)
            dtype = dtype if held.shape or held.dtype in NARROW else "f32"
        values = [self.scalar(x, dtype, is_exact=i in kept) for i, x in enumerate(operands)]
        return self.b.cast(self.b.pointwise(op, values), dtype_of(node), rounds=False)

    def plain(self, node: Node, *operands: Any, row: dict[str, Any], **how: Any) -> NodeId:
        """The rule of a row of ops.def; where it yields bools, operands take their common dtype."""
        if how or len(operands) != row["arity"]:
            return NotImplemented
        dtype = None
        if row["type_rule"] == "bool":
            given = [a.meta["val"] if isinstance(a, Node) else a for a in node.args]
            dtype = DTYPES[torch.result_type(given[0], given[-1])]
        return self.pointwise(node, row["name"], *operands, dtype=dtype)

    def aten_add(self, node: Node, a: Any, b: Any, alpha: Number = 1) -> NodeId:
        if isinstance(alpha, SYMBOLIC) or alpha != 1:
            b = self.pointwise(node, "mul", b, alpha)
        return self.pointwise(node, "sub" if node.target._opname == "sub" else "add", a, b)

    def aten_pow(self, node: Node, x: Any, exponent: Any) -> NodeId:
        """Some exponents are roots, as in eager."""
        is_number = isinstance(exponent, (int, float)) and dtype_of(node) in FLOATS
        root = ROOTS.get(exponent) if is_number else None
        return self.pointwise(node, *([root, x] if root else ["pow", x, exponent]))

    def aten_clamp(self, node: Node, x: Any, min: Any = None, max: Any = None) -> NodeId:
        op = "maximum" if max is None else "minimum" if min is None else "clamp"
        return self.pointwise(node, op, x, *(bound for bound in (min, max) if bound is not None))

    def axes_of(self, x: NodeId, dim: int | list[int] | None) -> list[int]:
        named, rank = [dim] if isinstance(dim, int) else list(dim or ()), len(self.shape(x))
        return named if rank and named else list(range(rank))

    def reduce(self, op: str, x: NodeId, dim: Any = None, keepdim: bool = False) -> NodeId:
        """`op` over `dim`: one axis, several, or all of them."""
        if self.b.type(x).dtype == "bool":
            op, x = BOOL_FORMS.get(op, op), self.b.cast(x, "u8") if op.startswith("arg") else x
        axes = self.axes_of(x, dim)
        return self.b.reduce(op, x, axes, self.b.type(x).dtype, bool(keepdim and axes))

    def count_of(self, x: NodeId, dim: Any = None) -> Dim:
        """How many elements there are, or a reduction combines."""
        return math.prod((self.shape(x)[axis] for axis in self.axes_of(x, dim)), start=Dim(1))

    def aten_sum(self, node: Node, x: NodeId, dim: Any = None, keepdim: bool = False,
                 dtype: Any = None) -> NodeId:
        op = node.target._opname
        if op in ("any", "all") and dim == []:
            return NotImplemented
        if op in ("any", "all", "prod", "sum"):
            x = self.b.cast(x, "bool" if op.startswith("a") else dtype_of(node))
        return self.b.cast(self.reduce(op, x, dim, keepdim), dtype_of(node))

    def aten_max(self, node: Node, x: NodeId, dim: Any = None, keepdim: bool = False) -> Any:
        """With its place, along a dimension; of amax and argmax tracing asserts that there is."""
        if self.b.may_be_empty(self.count_of(x, dim)):
            return NotImplemented  # which raises as in eager
        extreme = node.target._opname
        if dim is None:
            return self.reduce(f"a{extreme}", x)
        return tuple(self.reduce(kind + extreme, x, dim, keepdim) for kind in ("a", "arg"))

    def aten_var_mean(self, node: Node, x: NodeId, dim: Any = None, keepdim: bool = False,
                      dtype: Any = None, correction: Number | None = None) -> Any:
        """Variance and mean; of 16-bit floats in f32."""
        wanted = dtype_of(node)
        x = self.b.cast(x, "f32" if wanted in NARROW else wanted)
        made, one = self.b.type(x).dtype, 1 if correction is None else correction
        count = self.b.size_value(made, self.count_of(x, dim))
        freedom = self.b.pointwise("sub", [count, self.scalar(one, made)])
        freedom, results = self.b.pointwise("maximum", [freedom, self.scalar(0, made)]), []
        for name, op, divisor in (("var", "sum_sq_dev", freedom), ("mean", "sum", count)):
            if name in node.target._opname:
                total = self.reduce(op, x, dim, keepdim)
                results.append(self.b.cast(self.b.pointwise("div", [total, divisor]), wanted))
        return tuple(results) if len(results) > 1 else results[0]

    def aten_slice(self, node: Node, x: NodeId, dim: int = 0, start: Size | None = None,
                   end: Size | None = None, step: Size = 1) -> NodeId:
        given, made = node.args[0].meta["val"], result_of(node)
        start, selects = start_of(start, given.shape[dim]), node.target._opname == "select"
        if "unbacked_bindings" in node.meta:  # where data decides, tracing has only named these
            begin = given.storage_offset() + start * given.stride(dim)
            count = count_between(start, end, step, given.shape[dim])
            for size, value in (made.storage_offset(), begin), (selects or made.shape[dim], count):
                if isinstance(size, torch.SymInt):
                    self.symbols.setdefault(size.node.expr, self.dim(value))
        shape = self.shape_of(node)
        part = self.b.slice(x, dim, self.dim(start), 1 if selects else shape[dim], self.dim(step))
        return self.b.reshape(part, shape) if selects else part

    def aten_max_pool2d_with_indices(self, node: Node, x: NodeId, window: Any, stride: Any = (),
                                     padding: Any = (0,), dilation: Any = (1,),
                                     ceil_mode: bool = False) -> Any:
        """The largest of each window, as slices with a step; a call where indices are read."""
        given = window, stride or window, padding, dilation
        window, stride, padding, dilation = ((list(numbers) * 2)[:2] for numbers in given)
        is_read, is_float = any(u.args[1] != 0 for u in node.users), dtype_of(node) in FLOATS
        if is_read or not is_float or ceil_mode or math.prod(window) > MOST_IN_WINDOW:
            return NotImplemented
        shape = self.shape_of(node)
        before = [0] * (len(shape) - 2) + padding
        padded = [size + 2 * p for size, p in zip(self.shape(x)[-2:], padding)]
        x = self.b.pad(x, self.dims(before), shape[:-2] + padded, -math.inf, 0)
        return (self.b.max_of_windows(x, shape, window, dilation, stride),)

    def aten_cat(self, node: Node, parts: list[NodeId], dim: int = 0) -> NodeId:
        made = result_of(node)
        if any(isinstance(n, int) and n == 0 for n in made.shape):
            return self.filled(node, 0)
        full = [x for x in parts if len(self.shape(x)) == made.dim()]  # others are empty
        return self.b.cat([self.b.cast(x, dtype_of(node)) for x in full], dim)

    def aten_constant_pad_nd(self, node: Node, x: NodeId, padding: Any, value: float = 0) -> NodeId:
        before = [0] * (result_of(node).dim() - len(padding) // 2) + list(padding[::2])[::-1]
        if not all(isinstance(p, int) for p in padding):
            return NotImplemented
        return self.b.pad(x, self.dims(before), self.shape_of(node), float(value), whole(value))

    def as_rows(self, *values: NodeId) -> list[NodeId]:
        """Numbers as one row each."""
        return [x if self.shape(x) else self.b.reshape(x, [1]) for x in values]

    def aten_gather(self, node: Node, x: NodeId, dim: int, index: NodeId, **_: Any) -> NodeId:
        x, index = self.as_rows(x, index)
        if len(self.shape(x)) != len(self.shape(index)):
            return NotImplemented  # an index of nothing may have any rank
        return self.b.reshape(self.b.gather(x, index, dim, from_end=False), self.shape_of(node))

    def aten_index(self, node: Node, x: NodeId, indices: list[NodeId | None]) -> NodeId:
        given = {dim: index for dim, index in enumerate(indices) if index is not None}
        if any(self.b.type(index).dtype not in INDICES for index in given.values()):
            return NotImplemented
        return self.b.index(x, list(given.values()), list(given))

    def aten_slice_scatter(self, node: Node, x: NodeId, source: NodeId, dim: int = 0,
                           start: Any = None, end: Any = None, step: Size = 1) -> NodeId:
        size, shape = result_of(node).shape[dim], self.shape_of(node)
        given, start = node.args[1].meta["val"], start_of(start, size)
        if node.target._opname == "select_scatter":
            given, end = given.unsqueeze(dim), start + 1
            source = self.b.reshape(source, self.dims(given.shape))
        count = count_between(start, end, step, size)
        fits = given.dim() == len(shape) and guard_or_true(count == given.shape[dim])
        shape[dim] = self.dim(given.shape[dim]) if fits else Dim(1)
        if not fits or self.dims(given.shape) != shape:
            return NotImplemented  # which raises as in eager
        source = self.b.cast(source, dtype_of(node))
        return self.b.slice_scatter(x, source, dim, self.dim(start), self.dim(step))

    def draw_seed(self, node: Node, *_: Any, device: torch.device, **__: Any) -> NodeId:
        """A seed of random numbers: arguments of kernels.  Captured graphs draw in each replay."""
        is_seed = any(user.target is torch.ops.torch_stitch.random.default for user in node.users)
        if not is_seed or self.target == "cpu" or "is_captured" in self.gm.meta:
            return NotImplemented
        words = [self.b.symbol(self.extra_position(device), DATA_HINT, False) for _ in range(2)]
        return self.b.cat(self.as_rows(*(self.b.size_value("i64", word) for word in words)), 0)

    # Ops that write at indices become puts, which name eager's call as well: the core chooses.

    def put(self, node: Node, reduce: str, operands: tuple[NodeId, NodeId, NodeId], dim: int,
            wraps: bool = False, keeps: bool = True, ignored: int = -1) -> NodeId:
        """x with what the source holds put where the index says; operands: x, source, index.

        The index is [count] along dim, or of the source's shape.  `wraps`: negative ones count from
        the end; `keeps`: x counts where something comes; `ignored`: the index of no row."""
        dtype, result = dtype_of(node), result_of(node)
        op = PUTS.get(node.target._opname) or COMBINED.get(reduce, reduce)
        x, source = (self.b.cast(value, dtype) for value in operands[:2])
        empty = any(0 in self.shape(value) for value in (x, source))
        is_logic = dtype == "bool" and op != "last"
        is_whole = op == "mean" and dtype not in FLOATS
        if empty or is_logic or is_whole or overlaps(result):
            return NotImplemented
        row, call_operands = self.call(node, [])
        inputs = [*self.as_rows(x, source, operands[2]), *call_operands]
        how, kind = [dim, wraps, keeps, ignored], self.type_of(torch.atleast_1d(result))
        made = self.b.put(f"put_{op}", inputs, [*map(int, how)], self.calls, row, kind)
        if node in self.in_place:
            self.owners[made] = storage_of(self.in_place[node][1].meta["val"])
        return made if result.dim() else self.b.reshape(made, [])

    def aten_index_put(self, node: Node, x: NodeId, indices: list[NodeId | None], values: NodeId,
                       accumulate: bool = False) -> NodeId:
        """One indexed dimension, or a mask."""
        given = {dim: index for dim, index in enumerate(indices) if index is not None}
        (dim, index), shape = next(iter(given.items()), (0, x)), self.shape_of(node)
        kind = self.b.type(index).dtype if len(given) == 1 else ""
        if kind == "bool" and not accumulate:
            x, values = (self.b.cast(value, dtype_of(node)) for value in (x, values))
            return self.b.put_masked(x, dim, index, values)
        if kind not in INDICES:
            return NotImplemented
        values = self.b.expand(values, [*shape[:dim], *self.shape(index), *shape[dim + 1 :]])
        shape[dim] = self.count_of(index)
        operands = x, self.b.reshape(values, shape), self.b.reshape(index, [shape[dim]])
        return self.put(node, "sum" if accumulate else "last", operands, dim, wraps=True)

    def aten_embedding_dense_backward(self, node: Node, grad: NodeId, indices: NodeId, rows: Size,
                                      padding: int, by_frequency: bool) -> NodeId:
        if by_frequency:
            return NotImplemented
        count = self.count_of(indices)
        source = self.b.reshape(grad, [count, self.shape_of(node)[1]])
        operands = self.filled(node, 0), source, self.b.reshape(indices, [count])
        return self.put(node, "sum", operands, 0, ignored=max(padding, -1))

    def aten_scatter(self, node: Node, x: NodeId, dim: int, index: NodeId, source: NodeId | Number,
                     reduce: str = "last", include_self: bool = True) -> NodeId:
        """What the index has no place for is not read."""
        places, result = self.shape(index), result_of(node)
        if len(places) != result.dim() or 0 in places:
            return NotImplemented
        if not isinstance(source, NodeId):
            source = self.b.expand(self.scalar(source, dtype_of(node)), places)
        for d, size in enumerate(places):
            source = self.b.slice(source, d, 0, size, 1)
        dim %= max(1, result.dim())
        return self.put(node, reduce, (x, source, index), dim, keeps=include_self)

    def aten_index_add(self, node: Node, x: NodeId, dim: int, index: NodeId, source: NodeId,
                       reduce: str = "", include_self: bool = True, alpha: Number = 1) -> NodeId:
        shape, given = self.shape_of(node), self.b.type(source)
        dim %= max(1, len(shape))
        shape[dim : dim + 1] = [self.count_of(index)] * bool(shape)
        if given.shape != shape or given.dtype != dtype_of(node):
            return NotImplemented  # which raises as in eager
        source = source if alpha == 1 else self.pointwise(node, "mul", source, alpha)
        wraps = find_user_op(node)._opname == "index_fill"
        return self.put(node, reduce, (x, source, index), dim, wraps, include_self)


# Rules of aten's ops, or of one overload; other spaces are named.
ROWS: dict[str, Callable[..., Any]] = {
    "sub": Rules.aten_add,
    "all amax amin any argmax argmin prod": Rules.aten_sum,
    "min": Rules.aten_max,
    "mean var": Rules.aten_var_mean,
    "select": Rules.aten_slice,
    "select_scatter": Rules.aten_slice_scatter,
    "scatter_add scatter_reduce": Rules.aten_scatter,
    "index_copy index_reduce": Rules.aten_index_add,
    "div": lambda im, n, a, b, rounding_mode=None: im.pointwise(n, DIVIDES[rounding_mode], a, b),
    "flip": lambda im, n, x, dims: im.b.flip(x, dims[: result_of(n).dim()]),
    "permute": lambda im, _, x, dims: im.b.permute(x, list(dims)),
    "expand": lambda im, n, x, *_, **__: im.b.expand(x, im.shape_of(n)),
    "split_with_sizes": lambda im, _, x, sizes, dim=0: tuple(
        im.b.slice(x, dim, *im.dims([start, size]), 1)
        for start, size in zip(itertools.accumulate([0, *sizes]), sizes)
    ),
    "squeeze unsqueeze view.default": lambda im, n, x, *_: im.b.reshape(x, im.shape_of(n)),
    "embedding": lambda im, _, x, index, *__: im.b.index(x, [index], [0], from_end=False),
    "index_select": lambda im, n, x, dim, index: im.b.reshape(
        im.b.index(*im.as_rows(x), im.as_rows(index), [dim], from_end=False), im.shape_of(n)
    ),
    # The second argument, or the only one; nothing for memory that eager leaves as it was.
    "copy full full_like scalar_tensor": lambda im, n, *of, **_: im.filled(n, of[:2][-1]),
    "empty empty_strided new_empty_strided": lambda im, n, *_, **__: im.filled(n, 0),
    "randint.low": Rules.draw_seed,
    "torch_stitch.random": lambda im, n, a, b, _, *c: im.b.random(a, b, im.shape_of(n), *c),
    # What Dynamo makes of addcmul_ and addcdiv_.
    "prims.fma": lambda im, n, a, b, c: im.aten_add(n, im.pointwise(n, "mul", a, b), c),
    "prims.iota": lambda im, n, _, *, start, step, **__: im.b.cast(
        im.b.iota("i64", im.shape_of(n)[0], im.dim(start), im.dim(step)), dtype_of(n)
    ),
    # A cast that is a step of the user's op rounds no more than other ops do.
    "_to_copy alias clone lift_fresh_copy prims.convert_element_type": (
        lambda im, n, x, *_, **__: im.scalar(
            x, dtype_of(n), rounds="_to_copy" in str(n.meta.get("original_aten", "_to_copy"))
        )
    ),
    "where": lambda im, n, condition, *of: im.b.pointwise(
        "select", [im.scalar(condition, "bool"), *(im.scalar(x, dtype_of(n)) for x in of)]
    ),
    "_assert_async.msg _assert_scalar": lambda im, _, x, why: (
        x is True or im.b.assert_true(im.scalar(x, "bool"), why)
    ),
}
RULES = {f"aten.{name[5:]}": f for name, f in vars(Rules).items() if name.startswith("aten_")}
for names, f in ROWS.items():
    RULES |= {x if x.startswith(KNOWN) else f"aten.{x}": f for x in names.split()}
# What ops.def imports one to one.
for row in (row for row in ops() if row["family"] == "pointwise"):
    for name in row["aten"].split():
        RULES.setdefault(f"aten.{name.partition('.')[0]}", functools.partial(Rules.plain, row=row))
