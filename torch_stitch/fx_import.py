"""FX graph in AOT form (fake values in `meta["val"]`) -> core Graph.

A node becomes what its rule in fx_ops.py builds, or a library call; sizes become Dims over integer
arguments and what calls yield.  Nothing here decides what is fused.  What has no form in the core
is an UnsupportedError: the caller runs the graph.
"""

import contextlib
import operator
import os
import re
from typing import Any

import torch
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from torch_stitch import _core
from torch_stitch._core import Argument, Graph, NodeId, UnsupportedError
from torch_stitch.fx_calls import find_whole, is_strided, is_token, place_of, storage_of, tensors_of
from torch_stitch.fx_numbers import DTYPES, SYMBOLIC
from torch_stitch.fx_ops import RULES, Rules, find_user_op

FOLDERS = TORCH_FOLDER, OUR_FOLDER = tuple(map(os.path.dirname, (torch.__file__, __file__)))
aten = torch.ops.aten
LIFT = aten.lift_fresh_copy.default
# Torch 2.11 does not know: the check would go, since nobody reads what it yields.
_register_effectful_op("aten::_linalg_check_errors", _EffectType.ORDERED)


def find_frame(node: Node) -> tuple[str, int] | None:
    """The innermost frame of the user's that made this node: file and line; nothing if unknown."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    frames = [f for f in frames if os.path.dirname(f[0]) != OUR_FOLDER]
    frames = [f for f in frames if not f[0].startswith(TORCH_FOLDER)] or frames
    return (frames[-1][0], int(frames[-1][1])) if frames else None


def find_location(node: Node) -> str:
    frame = find_frame(node)  # as "model.py:31"
    return f"{os.path.basename(frame[0])}:{frame[1]}" if frame else ""


def complete_values(gm: GraphModule) -> None:
    """Fake values of nodes that the partitioner made without any: random ops that run again."""
    mode = torch._guards.detect_fake_mode([node.meta.get("val") for node in gm.graph.nodes])
    for node in gm.graph.nodes:
        if isinstance(node.target, HigherOrderOperator) and "val" not in node.meta and node.users:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            with mode or contextlib.nullcontext():
                node.meta = {**next(iter(node.users)).meta, "val": node.target(*args, **kwargs)}


def is_store(node: Any) -> bool:
    """A trailing copy_ into an argument, whose result is that argument."""
    stores = isinstance(node, Node) and node.target is aten.copy_.default
    return stores and node.args[0].op == "placeholder"


class Importer(Rules):
    """One import; an FX node becomes what the method of its `op` makes."""

    def __init__(self, gm: GraphModule, target: str, left_whole: Any) -> None:
        super().__init__(gm, target)
        self.graph: Graph
        self.left_whole, self.held_by = left_whole, dict[Node, Any]()
        results = [n for n in gm.graph.output_node().args[0] if isinstance(n, Node)]
        self.returned = {storage_of(t) for n in results if not is_store(n) for t in tensors_of(n)}
        for position, node in enumerate(gm.graph.find_nodes(op="placeholder")):
            value = node.meta.get("val")
            if isinstance(value, SYMBOLIC) and not value.node.is_nested_int():
                expression = value.node.expr
                self.sizes[expression] = (position, None), value
                if expression.is_Integer:  # as tracing has found
                    node.meta["val"] = int(value)
                elif isinstance(value, torch.SymInt):
                    self.symbols[expression] = self.argument(position, value)
                else:
                    held, extra = _core.TensorType("f64", [], []), self.extra_position(position)
                    self.numbers[expression] = self.b.input(node.name, held, extra)
            for dimension, size in enumerate(getattr(value, "shape", ())):
                if isinstance(size, torch.SymInt):
                    self.sizes.setdefault(size.node.expr, ((position, dimension), size))

    def placeholder(self, node: Node, position: int) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not is_token(node):
            return self.owned_input(node, position)
        plain = value is None or isinstance(value, (int, float, *SYMBOLIC))
        return value if plain else Argument(position)

    def get_attr(self, node: Node, position: int) -> Any:
        """A tensor that the graph holds: a number where it is one, else an extra argument."""
        value = operator.attrgetter(node.target)(self.gm)
        if not isinstance(value, torch.Tensor):
            return value
        node.meta.setdefault("val", value)
        users = [*node.users, *(u for n in node.users if n.target == LIFT for u in n.users)]
        stays = not self.all_on_cpu and any(user.op == "output" for user in users)
        is_number = value.dim() == 0 and is_strided(value) and value.device.type == "cpu"
        if is_number and value.dtype in DTYPES and not stays:
            number = self.scalar(value.item(), DTYPES[value.dtype])
            self.held[number] = self.held_by[node] = value.item()
            return number
        return self.owned_input(node, self.extra_position(value))

    def owned_input(self, node: Node, position: int) -> NodeId:
        value = self.b.input(node.name, self.type_of(node.meta["val"]), position)
        self.owners[value] = storage_of(node.meta["val"])
        return value

    def call_function(self, node: Node, position: int) -> Any:
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
                value = self.filled(target, value)
            return self.b.mutate(self.values[target], value)
        if name.startswith("aten.quantize_per_"):
            raise UnsupportedError("stand-ins do not say that a value is quantised")
        is_last = self.in_place.get(node, (0, 0, 1))[2] == 1  # else the next writes over its memory
        given = [*node.all_input_nodes, node]  # but for numbers that the graph holds
        given = [n for n in given if (n.args[0] if n.target == LIFT else n) not in self.held_by]
        plain = is_last and all(self.is_plain(t) for n in given for t in tensors_of(n))
        known = RULES.get(name) or RULES.get(name.rpartition(".")[0])
        rule = known if plain and node not in self.left_whole else None
        fake = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
        if rule and not _core.eager_refuses(self.target == "cpu", node.target, *fake):
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.values.__getitem__)
            with contextlib.suppress(UnsupportedError):  # anything else is a fault of the rule
                result = rule(self, node, *args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self.library(node)

    def output(self, node: Node, position: int) -> None:
        places: list[Any] = []
        for position, result in enumerate(node.args[0]):
            value = self.values[result] if isinstance(result, Node) else result
            whole = find_whole(result) if isinstance(value, NodeId) else None
            # The core has no such view.
            if whole and self.b.base(value) != self.b.base(self.values[whole]):
                tensor, result, value = result.meta["val"], whole, self.values[whole]
                places += place_of(tensor, whole.meta["val"])
                self.calls.views.append((position, tensor.dim(), tensor.dtype))
            if is_store(result):
                self.b.output_final(self.values[result.args[0]])
            elif isinstance(value, NodeId):
                self.b.output_tensor(self.with_layout(value, result.meta["val"]))
            elif value is None:
                self.b.output_none()
            elif isinstance(value, (bool, float, torch.SymBool, torch.SymFloat)):
                self.calls.number_outputs.append(position)
                self.b.output_tensor(self.scalar(value))
            elif isinstance(value, (int, torch.SymInt)):
                self.b.output_integer(self.dim(value))
            else:
                raise UnsupportedError(f"the graph returns {type(value).__name__}")
        for number in places:
            self.b.output_integer(self.dim(number))

    def keep_apart(self, value: Any, tensor: Any) -> Any:
        """`value`, or a copy: what is returned shares memory exactly where eager's does."""
        if isinstance(value, (tuple, list)):
            return tuple(map(self.keep_apart, value, tensor))
        is_seen = isinstance(value, NodeId) and isinstance(tensor, torch.Tensor)
        if not is_seen or storage_of(tensor) not in self.returned:
            return value
        value, storage = self.with_layout(value, tensor), storage_of(tensor)
        if self.owners.setdefault(self.b.base(value), storage) != storage and self.is_plain(tensor):
            value = self.b.with_strides(value, self.b.type(value).strides)
            self.owners[value] = storage
        return value


@torch._subclasses.fake_tensor.unset_fake_temporarily()
def import_graph(gm: GraphModule, target: str, left_whole: Any = ()) -> Importer:
    """The core's form of `gm` for a device; nodes in `left_whole` are library calls."""
    complete_values(gm)
    importer = Importer(gm, target, left_whole)
    for position, node in enumerate(gm.graph.nodes):
        location = find_location(node)
        importer.b.set_origin(str(find_user_op(node)), location, position)
        try:
            value = getattr(importer, node.op)(node, position)
            importer.values[node] = importer.keep_apart(value, node.meta.get("val"))
        except Exception as error:
            kind = UnsupportedError if isinstance(error, UnsupportedError) else _core.InternalError
            raise kind(f"{node.target} {location}: {error}") from error
    importer.graph = importer.b.finish(importer.argument_count + len(importer.calls.extras))
    return importer
