"""FX graph in AOT form (fake values in `meta["val"]`) -> core Graph.

A node becomes what its rule in fx_ops.py builds, or a library call; sizes become Dims over the
graph's integer arguments and what library calls yield.  Nothing here decides what is fused.  What
has no form in the core is an UnsupportedError: the caller runs the graph.
"""

import contextlib
import functools
import math
import operator

import torch
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op, with_effects
from torch._ops import HigherOrderOperator
from torch.fx import Node
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from torch_stitch import _core, fx_calls, fx_numbers, fx_ops
from torch_stitch._core import UnsupportedError
from torch_stitch.fx_calls import HELD, find_writes
from torch_stitch.fx_numbers import DATA_HINT, SYMBOLIC, hint_of, number_of, work_out
from torch_stitch.fx_scatter import RULES
from torch_stitch.user_code import find_location

aten = torch.ops.aten
LIFT = aten.lift_fresh_copy.default
# Torch 2.11 does not know: the check would go, since nobody reads what it yields.
_register_effectful_op("aten::_linalg_check_errors", _EffectType.ORDERED)
# Whose ops see nothing of a storage but the elements of their operands, as_strided's apart.
KNOWN = ("aten.", "prims.", "torch_stitch.")


def tensors_of(node):
    """The tensors among a node's fake values; none that only order calls."""
    values = [] if is_token(node) else tree_leaves(node.meta.get("val"))
    values = values[1:] if node.target is with_effects else values
    return [v for v in values if isinstance(v, torch.Tensor)]


def complete_values(gm):
    """Fake values of nodes that the partitioner made without any: random ops that run again."""
    mode = torch._guards.detect_fake_mode([node.meta.get("val") for node in gm.graph.nodes])
    for node in gm.graph.nodes:
        if isinstance(node.target, HigherOrderOperator) and "val" not in node.meta and node.users:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            with mode or contextlib.nullcontext():
                node.meta = {**next(iter(node.users)).meta, "val": node.target(*args, **kwargs)}


def is_token(node):
    """What a call with effects takes or yields so that it has a place among others: no memory."""
    taken = any(user.target is with_effects and user.args[0] is node for user in node.users)
    yields = node.target is operator.getitem and node.args[0].target is with_effects
    return taken or (yields and node.args[1] == 0)


def is_strided(tensor):
    """Whether sizes, strides and a place in memory are all that there is to it."""
    return tensor.layout == torch.strided and not (tensor.is_conj() or tensor.is_neg())


def is_plain(tensor):
    """Whether kernels can read it: a strided tensor of numbers that the core has."""
    return tensor.dtype in fx_ops.DTYPES and is_strided(tensor)


def storage_of(tensor):
    """A key for the memory behind a fake tensor."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor)


def viewed_by(node):
    """The node that made the memory which a view looks at, through all views between."""
    maker = node.args[0] if node.target is operator.getitem else node
    return viewed_by(maker.args[0]) if getattr(maker.target, "is_view", False) else node


def find_whole(node):
    """What a view is a part of, where strides and a place tell which; nothing where it is none."""
    whole = viewed_by(node)
    is_part = whole is not node and whole.op != "get_attr"
    return whole if is_part and all(is_strided(n.meta["val"]) for n in (node, whole)) else None


def place_of(view, whole):
    """What _core.part_of takes, of a whole that may begin anywhere."""
    begins = [x.storage_offset() * x.element_size() for x in (view, whole)]
    return *view.shape, *view.stride(), begins[0] - begins[1]


class Importer:
    """One import: `b` is the core's builder, `values` what each FX node became by its op's method.

    In the end `graph` and `calls`, what its library nodes run and what stands beside arguments and
    results (csrc/bindings/call_table.h), go to the core.
    """

    def __init__(self, gm, target, left_whole):
        self.b, self.calls = _core.Builder(), _core.CallTable()
        self.gm, self.target, self.left_whole = gm, target, left_whole
        self.all_on_cpu = all(t.device.type == "cpu" for n in gm.graph.nodes for t in tensors_of(n))
        placeholders = gm.graph.find_nodes(op="placeholder")
        self.values, self.symbols, self.sizes = {}, {}, {}
        self.argument_count, self.graph = len(placeholders), None
        self.numbers = {}  # symbol of a number that a tensor holds -> its core value
        self.held = {}  # core value -> number that the graph holds, in eager as a tensor on the CPU
        self.owners = {}  # core value in memory -> eager's storage that it stands for
        results = [n for n in gm.graph.output_node().args[0] if isinstance(n, Node)]
        self.returned = {storage_of(t) for n in results if not is_store(n) for t in tensors_of(n)}
        self.in_place = {}  # node that writes an argument where it lies -> form, argument, rank
        for position, node in enumerate(placeholders):
            forms = find_writes(node)
            self.in_place |= {n: (form, node, len(forms)) for n, form in forms.items()}
            value = node.meta.get("val")
            if isinstance(value, SYMBOLIC) and not value.node.is_nested_int():
                expression = value.node.expr
                self.sizes[expression] = position, None, value
                if expression.is_Integer:  # as tracing has found
                    node.meta["val"] = int(value)
                elif isinstance(value, torch.SymInt):
                    self.symbols[expression] = self.argument(position, value)
                else:
                    held, extra = _core.TensorType("f64", [], []), self.extra_position(position)
                    self.numbers[expression] = self.b.input(node.name, held, extra)
            for dimension, size in enumerate(getattr(value, "shape", ())):
                if isinstance(size, torch.SymInt):
                    self.sizes.setdefault(size.node.expr, (position, dimension, size))

    def is_plain(self, tensor):
        return is_plain(tensor) and (self.all_on_cpu or tensor.device.type != "cpu")

    def is_held(self, node):
        """Whether it is a number that the graph holds, or the copy by which it reads one."""
        source = node.args[0] if node.target == LIFT else node
        return source.op == "get_attr" and self.values[source] in self.held

    def extra_position(self, extra):
        self.calls.extras.append(extra)
        return self.argument_count + len(self.calls.extras) - 1

    def argument(self, position, size):
        """A size or number among the arguments; what data decided in an earlier graph may be 0."""
        env, expression = size.node.shape_env, size.node.expr
        least = env.bound_sympy(expression).lower
        is_positive = isinstance(size.node.hint, int) and bool(least > 0)
        known = [mod.args[1] for mod in env.divisible if mod.args[0] == expression]
        divisors = [int(divisor) for divisor in known if divisor.is_Integer]
        return self.b.symbol(position, hint_of(size), is_positive, math.lcm(*divisors))

    def dim(self, size):
        """An int or SymInt as a Dim."""
        symbolic = isinstance(size, torch.SymInt)
        return self.dim_of(size.node.expr) if symbolic else _core.Dim(int(size))

    def dims(self, sizes):
        return [self.dim(size) for size in sizes]

    def dim_of(self, expression):
        if expression not in self.symbols:
            self.symbols[expression] = self._make_dim(expression)
        return self.symbols[expression]

    def _make_dim(self, expression):
        kind, parts = type(expression).__name__, expression.args
        if expression.is_Integer:
            return _core.Dim(int(expression))
        if expression in self.sizes and (expression.is_Symbol or kind not in fx_numbers.DIM_FORMS):
            size = functools.partial(work_out, "lambda size: size", [self.sizes[expression][:2]])
            return self.argument(self.extra_position(size), self.sizes[expression][2])
        if expression.is_Symbol and expression not in self.numbers:
            raise UnsupportedError(f"no call before it yields the size {expression}")
        if expression.is_Pow and parts[1].is_Integer and parts[1] > 0:
            return functools.reduce(operator.mul, [self.dim_of(parts[0])] * int(parts[1]))
        numerator, denominator = expression.as_numer_denom()
        if denominator != 1:  # an exact division
            return self.b.opaque("floordiv", *map(self.dim_of, (numerator, denominator)))
        if expression.is_Add or expression.is_Mul:
            combine = operator.add if expression.is_Add else operator.mul
        elif kind in fx_numbers.OPAQUE_SIZES:
            combine = functools.partial(self.b.opaque, fx_numbers.OPAQUE_SIZES[kind])
        elif expression.free_symbols <= self.sizes.keys():  # before the program starts
            text, found = fx_numbers.formula(expression, self.sizes.get)
            function = functools.partial(work_out, text, [x[:2] for x in found])
            hints = [DATA_HINT if size.node.hint is None else size.node.hint for *_, size in found]
            hint = max(1, fx_numbers.evaluate(text)(*hints))
            return self.b.symbol(self.extra_position(function), hint, False)
        else:  # what tensors hold, read when the program is there
            op, held = aten._local_scalar_dense.default, number_of(self, expression)
            row = self.calls.add_call(str(op), op, (_core.Operand(0),), {})
            self.b.library(self.calls, row, [self.b.cast(held, "i64")], [], False, [])
            return self.b.late_symbol(row, 0, -1, DATA_HINT)
        return functools.reduce(combine, map(self.dim_of, parts))

    def type_of(self, value, is_made=False):
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return _core.TensorType("opaque", self.dims(getattr(value, "shape", ())), [])
        dtype = fx_ops.DTYPES[value.dtype] if self.is_plain(value) else "opaque"
        value = value.contiguous() if is_made and fx_ops.overlaps(value) else value
        return _core.TensorType(dtype, self.dims(value.shape), self.dims(value.stride()))

    def placeholder(self, node, position):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not is_token(node):
            return self.owned_input(node, position)
        plain = value is None or isinstance(value, (int, float, *SYMBOLIC))
        return value if plain else _core.Argument(position)

    def get_attr(self, node, position):
        """A tensor that the graph holds: a number where it is one, else an extra argument."""
        value = operator.attrgetter(node.target)(self.gm)
        if not isinstance(value, torch.Tensor):
            return value
        node.meta.setdefault("val", value)
        users = [*node.users, *(u for n in node.users if n.target == LIFT for u in n.users)]
        stays = not self.all_on_cpu and any(user.op == "output" for user in users)
        if value.dim() == 0 and is_plain(value) and value.device.type == "cpu" and not stays:
            number = fx_ops.scalar(self, value.item(), fx_ops.DTYPES[value.dtype])
            self.held[number] = value.item()
            return number
        return self.owned_input(node, self.extra_position(value))

    def owned_input(self, node, position):
        value = self.b.input(node.name, self.type_of(node.meta["val"]), position)
        self.owners[value] = storage_of(node.meta["val"])
        return value

    def call_function(self, node, position):
        value, name = node.meta.get("val"), str(node.target)
        if isinstance(value, (int, float, *SYMBOLIC)):
            if node.target is aten._local_scalar_dense.default and isinstance(value, SYMBOLIC):
                for symbol in value.node.expr.free_symbols - self.symbols.keys():
                    self.numbers[symbol] = self.values[node.args[0]]
            return value
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]
        if is_store(node):
            (target, source), value = node.args[:2], self.values[node.args[1]]
            if all(self.is_plain(n.meta["val"]) for n in (target, source)):
                value = fx_ops.filled(self, target, value)
            self.b.mutate(self.values[target], value)
            return value
        if name.startswith("aten.quantize_per_"):
            raise UnsupportedError("stand-ins do not say that a value is quantised")
        is_one = self.in_place.get(node, (0, 0, 1))[2] == 1  # else the next writes over its memory
        given = [n for n in [*node.all_input_nodes, node] if not self.is_held(n)]
        plain = is_one and all(self.is_plain(t) for n in given for t in tensors_of(n))
        known = plain and node not in self.left_whole
        rule = RULES.get(name) or RULES.get(name.rpartition(".")[0]) if known else None
        fake = rule and torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        if fake and not _core.eager_refuses(self.target == "cpu", node.target, *fake):
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.values.__getitem__)
            with contextlib.suppress(UnsupportedError):  # anything else is a fault of the rule
                result = rule(self, node, *args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self.library(node)

    def with_layout(self, value, tensor):
        """`value` with the strides that eager gives `tensor`, where it has others."""
        if not self.is_plain(tensor) or fx_ops.overlaps(tensor):
            return value
        return self.b.with_layout(value, self.dims(tensor.stride()))

    def call(self, node, sizes):
        """What eager runs for a node: name, row of the call table, operands; adds to `sizes`."""
        inputs, placeholders, target = [], {}, str(node.target)
        looks_beside = not target.startswith(KNOWN) or target.startswith("aten.as_strided")

        def convert(argument):
            whole = find_whole(argument) if looks_beside and isinstance(argument, Node) else None
            if whole and whole.op == "call_function":
                view = argument.meta["val"]
                place = tuple(map(convert, place_of(view, whole.meta["val"])))
                return HELD, _core.part_of, convert(whole), view.dtype, place
            value = self.values[argument] if isinstance(argument, Node) else argument
            if isinstance(value, torch.SymInt):
                sizes.append(self.dim(value))
                return sizes[-1]
            if isinstance(value, (torch.SymFloat, torch.SymBool)):
                inputs.append(fx_ops.scalar(self, value))
                return HELD, torch.Tensor.item, _core.Operand(len(inputs) - 1)
            if not isinstance(value, _core.NodeId):
                return value
            if argument not in placeholders:
                placeholders[argument] = _core.Operand(len(inputs))
                inputs.append(self.with_layout(value, argument.meta["val"]))
            return placeholders[argument]

        args, kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), convert)
        in_place = self.in_place.get(node, (None,))[0]
        name, function = str(in_place or node.target), in_place or fx_calls.owning(node)
        if node.target is with_effects and isinstance(args[1], torch._ops.OpOverload):
            name, function = str(args[1]), fx_calls.call_in_turn
        if any(leaf is HELD for leaf in tree_leaves((args, kwargs))):
            function = functools.partial(fx_calls.call_with_made, function)
        return name, self.calls.add_call(name, function, args, kwargs), inputs

    def library(self, node):
        value, sizes = node.meta.get("val"), []
        leaves, structure = tree_flatten(value)
        _, row, inputs = self.call(node, sizes)
        self.define_sizes(row, leaves)
        types = [self.type_of(v, True) for v in leaves if value is not None]
        made = self.b.library(self.calls, row, inputs, types, not structure.is_leaf(), sizes)
        self.note_in_place(node, made[0])
        return made[0] if structure.is_leaf() else tree_unflatten(made, structure)

    def define_sizes(self, row, results):
        """Sizes that nothing has told before are what the call yields."""
        for position, result in enumerate(results):
            sizes = dict(enumerate(getattr(result, "shape", ()))) or {-1: result}
            for dimension, size in sizes.items():
                symbol = size.node.expr if isinstance(size, torch.SymInt) else None
                told = symbol in self.symbols or symbol in self.sizes
                if symbol and symbol.is_Symbol and not told:
                    hint = hint_of(size)
                    self.symbols[symbol] = self.b.late_symbol(row, position, dimension, hint)

    def note_in_place(self, node, made):
        if node in self.in_place:
            self.owners[made] = storage_of(self.in_place[node][1].meta["val"])

    def output(self, node, position):
        places = []
        for position, result in enumerate(node.args[0]):
            value = self.values[result] if isinstance(result, Node) else result
            whole = find_whole(result) if isinstance(value, _core.NodeId) else None
            # The core has no such view.
            if whole and self.b.base(value) != self.b.base(self.values[whole]):
                tensor, result, value = result.meta["val"], whole, self.values[whole]
                places += place_of(tensor, whole.meta["val"])
                self.calls.views.append((position, tensor.dim(), tensor.dtype))
            if is_store(result):
                self.b.output_final(self.values[result.args[0]])
            elif isinstance(value, _core.NodeId):
                self.b.output_tensor(self.with_layout(value, result.meta["val"]))
            elif value is None:
                self.b.output_none()
            elif isinstance(value, (bool, float, torch.SymBool, torch.SymFloat)):
                self.calls.number_outputs.append(position)
                self.b.output_tensor(fx_ops.scalar(self, value))
            elif isinstance(value, (int, torch.SymInt)):
                self.b.output_integer(self.dim(value))
            else:
                raise UnsupportedError(f"the graph returns {type(value).__name__}")
        for number in places:
            self.b.output_integer(self.dim(number))

    def keep_apart(self, value, tensor):
        """`value`, or a copy: what is returned shares memory exactly where eager's does."""
        if isinstance(value, (tuple, list)):
            return tuple(map(self.keep_apart, value, tensor))
        is_seen = isinstance(value, _core.NodeId) and isinstance(tensor, torch.Tensor)
        if not is_seen or storage_of(tensor) not in self.returned:
            return value
        value, storage = self.with_layout(value, tensor), storage_of(tensor)
        if self.owners.setdefault(self.b.base(value), storage) != storage and self.is_plain(tensor):
            value = self.b.with_strides(value, self.b.type(value).strides)
            self.owners[value] = storage
        return value


def is_store(node):
    """A trailing copy_ into an argument, whose result is that argument."""
    stores = isinstance(node, Node) and node.target is aten.copy_.default
    return stores and node.args[0].op == "placeholder"


@torch._subclasses.fake_tensor.unset_fake_temporarily()
def import_graph(gm, target, left_whole=()):
    """The core's form of `gm` for a device; nodes in `left_whole` are library calls."""
    complete_values(gm)
    importer = Importer(gm, target, left_whole)
    for position, node in enumerate(gm.graph.nodes):
        location = find_location(node)
        importer.b.set_origin(str(fx_ops.find_user_op(node)), location, position)
        try:
            value = getattr(importer, node.op)(node, position)
            importer.values[node] = importer.keep_apart(value, node.meta.get("val"))
        except Exception as error:
            kind = UnsupportedError if isinstance(error, UnsupportedError) else _core.InternalError
            raise kind(f"{node.target} {location}: {error}") from error
    importer.graph = importer.b.finish(importer.argument_count + len(importer.calls.extras))
    return importer
