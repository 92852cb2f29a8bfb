"""Library calls: what one runs for an FX node, as a row of the call table, and what it sees."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.effects import with_effects
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from torch_stitch._core import CallPlaceholder, Dim, NodeId, Operand, TensorType, part_of
from torch_stitch.fx_numbers import DTYPES, Numbers, Size, hint_of

HELD = object()
GATHERS = ("aten.index.", "aten.index_select.", "aten.gather.", "aten.embedding.")
WRITES = ("aten.index_put.", "aten.index_add.", "aten.index_copy.", "aten.scatter")
# Whose ops see nothing of a storage but the elements of their operands, as_strided's apart.
KNOWN = ("aten.", "prims.", "torch_stitch.")


def result_of(node: Node) -> torch.Tensor:
    """The fake value of a node's (first) result."""
    value = node.meta["val"]
    return value[0] if isinstance(value, (list, tuple)) else value


def dtype_of(node: Node) -> str:
    return DTYPES[result_of(node).dtype]


def is_token(node: Node) -> bool:
    """What a call with effects takes or yields so that it has a place among others: no memory."""
    taken = any(user.target is with_effects and user.args[0] is node for user in node.users)
    yields = node.target is operator.getitem and node.args[0].target is with_effects
    return taken or (yields and node.args[1] == 0)


def tensors_of(node: Node) -> list[torch.Tensor]:
    """The tensors among a node's fake values; none that only order calls."""
    values = [] if is_token(node) else tree_leaves(node.meta.get("val"))
    values = values[1:] if node.target is with_effects else values
    return [v for v in values if isinstance(v, torch.Tensor)]


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether a dimension repeats elements; a stride that depends on data is not asked."""
    return any(isinstance(s, int) and s == 0 for s in tensor.stride())


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether sizes, strides and a place in memory are all that there is to it."""
    return tensor.layout == torch.strided and not (tensor.is_conj() or tensor.is_neg())


def storage_of(tensor: torch.Tensor) -> int:
    """A key for the memory behind a fake tensor."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor)


def viewed_by(node: Node) -> Node:
    """The node that made the memory which a view looks at, through all views between."""
    maker = node.args[0] if node.target is operator.getitem else node
    return viewed_by(maker.args[0]) if getattr(maker.target, "is_view", False) else node


def find_whole(node: Node) -> Node | None:
    """What a view is a part of, where strides and a place tell which; nothing where it is none."""
    whole = viewed_by(node)
    is_part = whole is not node and whole.op != "get_attr"
    return whole if is_part and all(is_strided(n.meta["val"]) for n in (node, whole)) else None


def place_of(view: torch.Tensor, whole: torch.Tensor) -> tuple[Size, ...]:
    """What _core.part_of takes, of a whole that may begin anywhere."""
    begins = [x.storage_offset() * x.element_size() for x in (view, whole)]
    return *view.shape, *view.stride(), begins[0] - begins[1]


def find_form(op: Any, suffix: str) -> OpOverload | None:
    """The op that does the same in place ("_") or in memory of its own ("_copy"), if there is."""
    is_aten = getattr(op, "namespace", "") == "aten"
    packet = getattr(torch.ops.aten, op._opname + suffix, None) if is_aten else None
    return getattr(packet, op._overloadname, None) if packet else None


def writes_at_indices(node: Node) -> bool:
    """Whether eager writes some elements alone; masks are for kernels."""
    is_mask = any(result_of(n).dtype == torch.bool for n in node.all_input_nodes)
    return str(node.target).startswith(WRITES) and not is_mask


def is_operand_of(node: Node, write: Node) -> bool:
    """Whether all that is made of a value is an operand of `write`."""
    pure = isinstance(node.target, OpOverload) and not node.target._schema.is_mutable
    return node is write or (pure and all(is_operand_of(user, write) for user in node.users))


def find_writes(argument: Node) -> dict[Node, OpOverload]:
    """What may write an argument where it lies, the last one first: the form of each by node.

    It is an op whose result only goes back there, or several that write at indices, one over the
    other.  What is written over is read only to gather operands of what writes."""
    stores = [n for n in argument.users if n.target is torch.ops.aten.copy_.default]
    node = stores[0].args[1] if stores and stores[0].args[0] is argument else argument
    forms = dict[Node, OpOverload]()
    while node is not argument:
        before = node.args[0] if isinstance(node, Node) and node.args else None
        form = find_form(node.target, "_") if isinstance(before, Node) else None
        if not form or not before or node.meta["val"].stride() != before.meta["val"].stride():
            return {}
        readers = before.users.keys() - {node, *stores[:1]}
        if not all(str(n.target).startswith(GATHERS) and is_operand_of(n, node) for n in readers):
            return {}
        forms[node], node = form, before
    return forms if len(forms) == 1 or all(map(writes_at_indices, forms)) else {}


def owning(node: Node) -> Callable[..., Any]:
    """The op itself; one that copies for a view of memory that kernels use again."""
    target = node.target
    is_view = getattr(target, "is_view", False)
    if not is_view or not any(result_of(n).dtype in DTYPES for n in (node, node.args[0])):
        return target
    keeps_strides = target is torch.ops.aten.as_strided.default  # which its copying form does not
    form = None if keeps_strides else find_form(target, "_copy")
    return form or (lambda *args, **kwargs: tree_map(torch.clone, target(*args, **kwargs)))


def call_in_turn(_: Any, op: OpOverload, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What with_effects does, which takes ten times as long to find that out."""
    result = op(*args, **kwargs)
    return torch.empty(0), *(result if isinstance(result, tuple) else (result,))


def call_with_made(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Where HELD begins a tuple, `function` takes what its second makes of the rest."""

    def is_held(x: Any) -> bool:
        return isinstance(x, tuple) and len(x) > 0 and x[0] is HELD

    given = tree_map(lambda x: x[1](*x[2:]) if is_held(x) else x, (args, kwargs), is_leaf=is_held)
    return function(*given[0], **given[1])


class Calls(Numbers):
    """The calls of one import, and `values`: what each FX node became."""

    def __init__(self, gm: GraphModule, target: str) -> None:
        self.gm, self.target = gm, target
        placeholders = gm.graph.find_nodes(op="placeholder")
        super().__init__(len(placeholders))
        self.all_on_cpu = all(t.device.type == "cpu" for n in gm.graph.nodes for t in tensors_of(n))
        self.values: dict[Node, Any] = {}
        self.owners: dict[NodeId, int] = {}  # by value in memory: eager's storage that it is
        # By node that writes an argument where it lies: the form, the argument, how many do so.
        self.in_place: dict[Node, tuple[OpOverload, Node, int]] = {}
        for node in placeholders:
            forms = find_writes(node)
            self.in_place |= {n: (form, node, len(forms)) for n, form in forms.items()}

    def is_plain(self, tensor: torch.Tensor) -> bool:
        """Whether kernels can read it: a strided tensor of numbers that the core has."""
        is_near = self.all_on_cpu or tensor.device.type != "cpu"
        return is_near and tensor.dtype in DTYPES and is_strided(tensor)

    def type_of(self, value: Any, is_made: bool = False) -> TensorType:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return TensorType("opaque", self.dims(getattr(value, "shape", ())), [])
        dtype = DTYPES[value.dtype] if self.is_plain(value) else "opaque"
        value = value.contiguous() if is_made and overlaps(value) else value
        return TensorType(dtype, self.dims(value.shape), self.dims(value.stride()))

    def with_layout(self, value: NodeId, tensor: torch.Tensor) -> NodeId:
        """`value` with the strides that eager gives `tensor`, where it has others."""
        if not self.is_plain(tensor) or overlaps(tensor):
            return value
        return self.b.with_layout(value, self.dims(tensor.stride()))

    def call(self, node: Node, sizes: list[Dim]) -> tuple[int, list[NodeId]]:
        """What eager runs for a node: its row of the call table, operands; adds to `sizes`."""
        inputs, placeholders = list[NodeId](), dict[Node, CallPlaceholder]()
        target = str(node.target)
        looks_beside = not target.startswith(KNOWN) or target.startswith("aten.as_strided")

        def convert(argument: Any) -> Any:
            whole = find_whole(argument) if looks_beside and isinstance(argument, Node) else None
            if whole and whole.op == "call_function":
                view = argument.meta["val"]
                place = tuple(map(convert, place_of(view, whole.meta["val"])))
                return HELD, part_of, convert(whole), view.dtype, place
            value = self.values[argument] if isinstance(argument, Node) else argument
            if isinstance(value, torch.SymInt):
                sizes.append(self.dim(value))
                return sizes[-1]
            if isinstance(value, (torch.SymFloat, torch.SymBool)):
                inputs.append(self.scalar(value))
                return HELD, torch.Tensor.item, Operand(len(inputs) - 1)
            if not isinstance(value, NodeId):
                return value
            if argument not in placeholders:
                placeholders[argument] = Operand(len(inputs))
                inputs.append(self.with_layout(value, argument.meta["val"]))
            return placeholders[argument]

        args, kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), convert)
        in_place = self.in_place.get(node, (None,))[0]
        name, function = str(in_place or node.target), in_place or owning(node)
        if node.target is with_effects and isinstance(args[1], OpOverload):
            name, function = str(args[1]), call_in_turn
        if any(leaf is HELD for leaf in tree_leaves((args, kwargs))):
            function = functools.partial(call_with_made, function)
        return self.calls.add_call(name, function, args, kwargs), inputs

    def library(self, node: Node) -> Any:
        sizes, value = list[Dim](), node.meta.get("val")
        (row, inputs), (leaves, structure) = self.call(node, sizes), tree_flatten(value)
        for position, result in enumerate(leaves):
            places = dict(enumerate(getattr(result, "shape", ()))) or {-1: result}
            for d, size in places.items():  # what nothing has told before is its own
                symbol = size.node.expr if isinstance(size, torch.SymInt) else None
                told = symbol in self.symbols or symbol in self.sizes
                if symbol and symbol.is_Symbol and not told:
                    self.symbols[symbol] = self.b.late_symbol(row, position, d, hint_of(size))
        types = [self.type_of(v, True) for v in leaves if value is not None]
        made = self.b.library(self.calls, row, inputs, types, not structure.is_leaf(), sizes)
        if node in self.in_place:
            self.owners[made[0]] = storage_of(self.in_place[node][1].meta["val"])
        return made[0] if structure.is_leaf() else tree_unflatten(made, structure)
