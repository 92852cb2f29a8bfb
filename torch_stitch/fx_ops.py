"""Rules of import: how one aten op becomes core nodes.

RULES maps an op, or one overload of it, to `rule(importer, node, *args, **kwargs)`, where tensors
are core values and all else is as in the FX graph.  Where it answers NotImplemented, or there is
none, the node is a library call, but for the `aten` column of ops.def and what decompositions.py
takes apart.
"""

import functools
import itertools
import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as PROMOTION
from torch._prims_common import elementwise_dtypes
from torch.fx.experimental.symbolic_shapes import guard_or_true

from torch_stitch import _core
from torch_stitch.fx_numbers import DATA_HINT, SYMBOLIC, number_of, whole

DTYPES = _core.dtypes
if torch.tensor(500.0).to(torch.float8_e4m3fn).float().isnan():  # torch 2.11
    del DTYPES[torch.float8_e4m3fn]
NARROW = {DTYPES[t]: t for t in DTYPES if t.is_floating_point and t.itemsize < 4}
FLOATS = (*NARROW, "f32", "f64")
# On bools there is logic instead of arithmetic and bits.
BOOL_FORMS = {"bitwise_xor": "logical_xor", "bitwise_not": "logical_not"}
BOOL_FORMS |= dict.fromkeys(("add", "maximum", "bitwise_or"), "logical_or")
BOOL_FORMS |= dict.fromkeys(("mul", "minimum", "bitwise_and"), "logical_and")
# What eager computes with numbers as they are, by whether on a CPU: there if they come second.
EXACT = {True: "mul div div_floor div_trunc", False: "add sub mul div div_floor div_trunc"}
DIVIDES = {None: "div", "floor": "div_floor", "trunc": "div_trunc"}
ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
MOST_IN_WINDOW = 25  # elements of a pooling: each is read that often
RULES = {}


def rule(names, space="aten"):
    found = [f"{space}.{name}" for name in names.split()]
    return lambda function: RULES.update(dict.fromkeys(found, function)) or function


def result_of(node):
    """The fake value of a node's (first) result."""
    value = node.meta["val"]
    return value[0] if isinstance(value, (list, tuple)) else value


def overlaps(tensor):
    """Whether a dimension repeats elements; a stride that depends on data is not asked."""
    return any(isinstance(s, int) and s == 0 for s in tensor.stride())


def find_user_op(node):
    """What was taken apart into an op that may find an index out of range, else the op itself."""
    indexes = getattr(node.target, "_opname", "") in ("gather", "index", "index_copy", "index_put")
    return (node.meta.get("original_aten") if indexes else None) or node.target


def dtype_of(node):
    return DTYPES[result_of(node).dtype]


def shape_of(im, node):
    return im.dims(result_of(node).shape)


def scalar(im, number, dtype=None, is_exact=False, rounds=True):
    """A value, a Python number or a symbolic one as a value of `dtype`; is_exact: kept in f32."""
    dtype = dtype or ("bool" if isinstance(number, (bool, torch.SymBool)) else "f64")
    if is_exact and isinstance(number, _core.NodeId):
        number = im.held.get(number, number)
    if isinstance(number, _core.NodeId):
        return im.b.cast(number, dtype, rounds)
    if isinstance(number, SYMBOLIC):
        return im.b.cast(number_of(im, number.node.expr, dtype), dtype)
    if dtype in NARROW and not is_exact:
        number = torch.tensor(number, dtype=NARROW[dtype]).item()
    return im.b.full(dtype, float(number), whole(number))


def pointwise(im, node, op, *operands, dtype=None):
    """`op` on operands of one dtype (the result's, unless given), cast to the result's."""
    dtype, on_cpu, last = dtype or dtype_of(node), im.all_on_cpu, operands[-1]
    op = BOOL_FORMS.get(op, op) if dtype == "bool" else op
    kept = range(on_cpu, 2) if op in EXACT[on_cpu].split() else ()  # which operands stay exact
    if on_cpu and kept and isinstance(last, _core.NodeId) and dtype in NARROW:
        held = im.b.type(last)
        dtype = dtype if held.shape or held.dtype in NARROW else "f32"
    values = [scalar(im, x, dtype, is_exact=i in kept) for i, x in enumerate(operands)]
    return im.b.cast(im.b.pointwise(op, values), dtype_of(node), rounds=False)


def plain(row, im, node, *operands, **kwargs):
    """The rule of a row of ops.def; where it yields bools, operands take their common dtype."""
    if kwargs or len(operands) != row["arity"]:
        return NotImplemented
    dtype = None
    if row["type_rule"] == "bool":
        given = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in node.args]
        dtype = DTYPES[elementwise_dtypes(*given, type_promotion_kind=PROMOTION.DEFAULT)[1]]
    return pointwise(im, node, row["name"], *operands, dtype=dtype)


@rule("add sub")
def add(im, node, a, b, alpha=1):
    if isinstance(alpha, SYMBOLIC) or alpha != 1:
        b = pointwise(im, node, "mul", b, alpha)
    return pointwise(im, node, "sub" if node.target._opname == "sub" else "add", a, b)


@rule("pow")
def power(im, node, x, exponent):
    """Some exponents are roots, as in eager."""
    root = isinstance(exponent, (int, float)) and dtype_of(node) in FLOATS and ROOTS.get(exponent)
    return pointwise(im, node, root, x) if root else pointwise(im, node, "pow", x, exponent)


@rule("clamp")
def clamp(im, node, x, min=None, max=None):
    op = "maximum" if max is None else "minimum" if min is None else "clamp"
    return pointwise(im, node, op, x, *(bound for bound in (min, max) if bound is not None))


def axes_of(im, x, dim):
    rank = len(im.b.type(x).shape)
    if not rank or dim in (None, []):
        return list(range(rank))
    return [dim] if isinstance(dim, int) else list(dim)


def reduce(im, op, x, dim=None, keepdim=False):
    """`op` over `dim`: one axis, several, or all of them."""
    if im.b.type(x).dtype == "bool" and op.startswith("a"):
        op = {"amax": "any", "amin": "all"}.get(op, op)
        x = im.b.cast(x, "u8") if op.startswith("arg") else x
    axes = axes_of(im, x, dim)
    return im.b.reduce(op, x, axes, im.b.type(x).dtype, bool(keepdim and axes))


def count_of(im, x, dim):
    """How many elements a reduction combines."""
    return math.prod(im.b.type(x).shape[axis] for axis in axes_of(im, x, dim))


@rule("all amax amin any argmax argmin prod sum")
def reduction(im, node, x, dim=None, keepdim=False, dtype=None):
    op = node.target._opname
    if op in ("any", "all") and dim == []:
        return NotImplemented
    if op in ("any", "all", "prod", "sum"):
        x = im.b.cast(x, "bool" if op.startswith("a") else dtype_of(node))
    return im.b.cast(reduce(im, op, x, dim, keepdim), dtype_of(node))


@rule("max min")
def extreme(im, node, x, dim=None, keepdim=False):
    """With its place, where along a dimension; of amax and argmax tracing asserts that there is."""
    if im.b.may_be_empty(count_of(im, x, dim)):
        return NotImplemented  # which raises as in eager
    if dim is None:
        return reduce(im, f"a{node.target._opname}", x)
    return tuple(reduce(im, kind + node.target._opname, x, dim, keepdim) for kind in ("a", "arg"))


@rule("mean var var_mean")
def moments(im, node, x, dim=None, keepdim=False, dtype=None, correction=None):
    """Variance and mean; of 16-bit floats in f32."""
    wanted, results = dtype_of(node), []
    dtype = "f32" if wanted in NARROW else wanted
    x = im.b.cast(x, dtype)
    count = im.b.size_value(dtype, count_of(im, x, dim))
    if "var" in node.target._opname:
        freedom = [count, scalar(im, 1 if correction is None else correction, dtype)]
        freedom = [im.b.pointwise("sub", freedom), scalar(im, 0, dtype)]
        total = reduce(im, "sum_sq_dev", x, dim, keepdim)
        results.append(im.b.pointwise("div", [total, im.b.pointwise("maximum", freedom)]))
    if "mean" in node.target._opname:
        results.append(im.b.pointwise("div", [reduce(im, "sum", x, dim, keepdim), count]))
    results = tuple(im.b.cast(result, wanted) for result in results)
    return results if len(results) > 1 else results[0]


def start_of(start, size):
    """Where a slice begins, as Python counts: negative from the end, clamped to the extent."""
    if start is None or (isinstance(start, int) and start == 0):
        return 0
    start = start + size * torch.sym_max(torch.sym_min(-start, 1), 0)
    return torch.sym_min(torch.sym_max(start, 0), size)


def count_between(start, end, step, size):
    """How many elements a slice takes that begins at `start`, as start_of has it."""
    end = start_of(size if end is None else end, size)
    return torch.sym_max(end - start + step - 1, 0) // step


@rule("slice select")
def slice_dim(im, node, x, dim=0, start=None, end=None, step=1):
    given, made = node.args[0].meta["val"], result_of(node)
    start, selects = start_of(start, given.shape[dim]), node.target._opname == "select"
    if "unbacked_bindings" in node.meta:  # where data decides, tracing has only named these
        begin = given.storage_offset() + start * given.stride(dim)
        count = count_between(start, end, step, given.shape[dim])
        for size, value in (made.storage_offset(), begin), (selects or made.shape[dim], count):
            if isinstance(size, torch.SymInt):
                im.symbols.setdefault(size.node.expr, im.dim(value))
    shape = shape_of(im, node)
    part = im.b.slice(x, dim, im.dim(start), 1 if selects else shape[dim], im.dim(step))
    return im.b.reshape(part, shape) if selects else part


@rule("split_with_sizes")
def split(im, node, x, sizes, dim=0):
    counts = im.dims(sizes)
    starts = itertools.accumulate(counts, initial=0)
    return tuple(im.b.slice(x, dim, start, count, 1) for start, count in zip(starts, counts))


@rule("max_pool2d_with_indices")
def max_pool(im, node, x, window, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    """The largest of each window, as slices with a step; a library call where indices are read."""
    given = window, stride or window, padding, dilation
    window, stride, padding, dilation = ((list(numbers) * 2)[:2] for numbers in given)
    is_read = any(user.args[1] != 0 for user in node.users)
    if is_read or dtype_of(node) not in FLOATS or ceil_mode or math.prod(window) > MOST_IN_WINDOW:
        return NotImplemented
    shape = shape_of(im, node)
    before = [0] * (len(shape) - 2) + padding
    padded = [size + 2 * p for size, p in zip(im.b.type(x).shape[-2:], padding)]
    x = im.b.pad(x, im.dims(before), shape[:-2] + padded, -math.inf, 0)
    return (im.b.max_of_windows(x, shape, window, dilation, stride),)


@rule("cat")
def cat(im, node, parts, dim=0):
    if any(isinstance(n, int) and n == 0 for n in result_of(node).shape):
        return filled(im, node, 0)
    rank = result_of(node).dim()  # what has another is empty, and passed over
    kept = [im.b.cast(part, dtype_of(node)) for part in parts if len(im.b.type(part).shape) == rank]
    return im.b.cat(kept, dim)


@rule("constant_pad_nd")
def pad(im, node, x, padding, value=0):
    before = [0] * (result_of(node).dim() - len(padding) // 2) + list(padding[::2])[::-1]
    if not all(isinstance(p, int) for p in padding):
        return NotImplemented
    return im.b.pad(x, im.dims(before), shape_of(im, node), float(value), whole(value))


def as_rows(im, *values):
    """Numbers as one row each."""
    return [x if im.b.type(x).shape else im.b.reshape(x, [1]) for x in values]


@rule("gather index_select")
def gather(im, node, x, dim, index, **kwargs):
    x, index = as_rows(im, x, index)
    if node.target._opname == "index_select":
        return im.b.reshape(im.b.index(x, [index], [dim], from_end=False), shape_of(im, node))
    if len(im.b.type(x).shape) != len(im.b.type(index).shape):
        return NotImplemented  # an index of nothing may have any rank
    return im.b.reshape(im.b.gather(x, index, dim, from_end=False), shape_of(im, node))


@rule("index")
def index(im, node, x, indices):
    given = [(dim, i) for dim, i in enumerate(indices) if i is not None]
    if any(im.b.type(i).dtype not in ("i32", "i64") for _, i in given):
        return NotImplemented
    return im.b.index(x, [i for _, i in given], [dim for dim, _ in given])


@rule("slice_scatter select_scatter")
def slice_scatter(im, node, x, source, dim=0, start=None, end=None, step=1):
    size, shape, given = result_of(node).shape[dim], shape_of(im, node), node.args[1].meta["val"]
    start = start_of(start, size)
    if node.target._opname == "select_scatter":
        given, end = given.unsqueeze(dim), start + 1
        source = im.b.reshape(source, im.dims(given.shape))
    count = count_between(start, end, step, size)
    fits = given.dim() == len(shape) and guard_or_true(count == given.shape[dim])
    shape[dim] = im.dim(given.shape[dim]) if fits else 1
    if not fits or im.dims(given.shape) != shape:
        return NotImplemented  # which raises as in eager
    start, step = im.dim(start), im.dim(step)
    return im.b.slice_scatter(x, im.b.cast(source, dtype_of(node)), dim, start, step)


@rule("randint.low")
def draw_seed(im, node, *_, device, **__):
    """Of random numbers: arguments of kernels.  A captured graph draws anew in each replay."""
    is_seed = any(user.target is torch.ops.torch_stitch.random.default for user in node.users)
    if not is_seed or im.target == "cpu" or "is_captured" in im.gm.meta:
        return NotImplemented
    words = [im.b.symbol(im.extra_position(device), DATA_HINT, False) for _ in range(2)]
    return im.b.cat(as_rows(im, *(im.b.size_value("i64", word) for word in words)), 0)


def filled(im, node, number):
    """A number, or the elements of another value, wherever the result has elements."""
    return im.b.expand(scalar(im, number, dtype_of(node)), shape_of(im, node))


rule("div")(lambda im, n, a, b, rounding_mode=None: pointwise(im, n, DIVIDES[rounding_mode], a, b))
rule("flip")(lambda im, node, x, dims: im.b.flip(x, dims[: result_of(node).dim()]))
rule("permute")(lambda im, node, x, dims: im.b.permute(x, list(dims)))
rule("expand")(lambda im, node, x, *_, **__: im.b.expand(x, shape_of(im, node)))
rule("squeeze unsqueeze view.default")(lambda im, n, x, *_: im.b.reshape(x, shape_of(im, n)))
rule("embedding")(lambda im, _, w, i, *__: im.b.index(w, [i], [0], from_end=False))
# The second argument, or the only one; nothing for memory that eager leaves as it was.
rule("copy full full_like scalar_tensor")(lambda im, n, *of, **_: filled(im, n, of[:2][-1]))
rule("empty empty_strided new_empty_strided")(lambda im, node, *_, **__: filled(im, node, 0))
rule("random", "torch_stitch")(lambda im, n, a, b, _, *c: im.b.random(a, b, shape_of(im, n), *c))
# What Dynamo makes of addcmul_ and addcdiv_.
rule("fma", "prims")(lambda im, n, *of: add(im, n, pointwise(im, n, "mul", *of[:2]), of[2]))
rule("iota", "prims")(
    lambda im, n, _, *, start, step, **__: im.b.cast(
        im.b.iota("i64", shape_of(im, n)[0], im.dim(start), im.dim(step)), dtype_of(n)
    )
)
# A cast that is a step of the user's op rounds no more than other ops do.
rule("_to_copy alias clone lift_fresh_copy")(
    lambda im, n, x, *_, **__: scalar(
        im, x, dtype_of(n), rounds="_to_copy" in str(n.meta.get("original_aten", "_to_copy"))
    )
)
rule("convert_element_type", "prims")(RULES["aten._to_copy"])
rule("where")(
    lambda im, n, *given: im.b.pointwise(
        "select", [scalar(im, x, to) for x, to in zip(given, ("bool", *[dtype_of(n)] * 2))]
    )
)
rule("_assert_async.msg _assert_scalar")(
    lambda im, _, x, why: x is True or im.b.assert_true(scalar(im, x, "bool"), why)
)
# What ops.def imports one to one.
for row in (row for row in _core.ops() if row["family"] == "pointwise"):
    for name in row["aten"].split():
        RULES.setdefault(f"aten.{name.partition('.')[0]}", functools.partial(plain, row))
