"""What a library call runs for an FX node: the op, or a form of it that fits our memory."""

import torch
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils._pytree import tree_map

from torch_stitch.fx_ops import DTYPES, result_of

HELD = object()
GATHERS = ("aten.index.", "aten.index_select.", "aten.gather.", "aten.embedding.")
WRITES = ("aten.index_put.", "aten.index_add.", "aten.index_copy.", "aten.scatter")


def find_form(op, suffix):
    """The op that does the same in place ("_") or in memory of its own ("_copy"), if there is."""
    is_aten = getattr(op, "namespace", "") == "aten"
    packet = getattr(torch.ops.aten, op._opname + suffix, None) if is_aten else None
    return getattr(packet, op._overloadname, None) if packet else None


def writes_at_indices(node):
    """Whether eager writes some elements alone; masks are for kernels."""
    is_mask = any(result_of(n).dtype == torch.bool for n in node.all_input_nodes)
    return str(node.target).startswith(WRITES) and not is_mask


def is_operand_of(node, write):
    """Whether all that is made of a value is an operand of `write`."""
    pure = isinstance(node.target, OpOverload) and not node.target._schema.is_mutable
    return node is write or (pure and all(is_operand_of(user, write) for user in node.users))


def find_writes(argument):
    """What may write an argument where it lies, the last one first: the form of each by node.

    It is an op whose result only goes back there, or several that write at indices, one over the
    other.  What is written over is read only to gather operands of what writes."""
    stores = [n for n in argument.users if n.target is torch.ops.aten.copy_.default]
    node, forms = stores[0].args[1] if stores and stores[0].args[0] is argument else argument, {}
    while node is not argument:
        before = node.args[0] if isinstance(node, Node) and node.args else None
        form = find_form(node.target, "_") if isinstance(before, Node) else None
        if not form or node.meta["val"].stride() != before.meta["val"].stride():
            return {}
        readers = before.users.keys() - {node, *stores[:1]}
        if not all(str(n.target).startswith(GATHERS) and is_operand_of(n, node) for n in readers):
            return {}
        forms[node], node = form, before
    return forms if len(forms) == 1 or all(map(writes_at_indices, forms)) else {}


def owning(node):
    """The op itself; one that copies for a view of memory that kernels use again."""
    target = node.target
    is_view = getattr(target, "is_view", False)
    if not is_view or not any(result_of(n).dtype in DTYPES for n in (node, node.args[0])):
        return target
    keeps_strides = target is torch.ops.aten.as_strided.default  # which its copying form does not
    form = None if keeps_strides else find_form(target, "_copy")
    return form or (lambda *args, **kwargs: tree_map(torch.clone, target(*args, **kwargs)))


def call_in_turn(_, op, *args, **kwargs):
    """What with_effects does, which takes ten times as long to find that out."""
    result = op(*args, **kwargs)
    return torch.empty(0), *(result if isinstance(result, tuple) else (result,))


def call_with_made(function, *args, **kwargs):
    """Where HELD begins a tuple, `function` takes what its second makes of the rest."""

    def is_held(x):
        return isinstance(x, tuple) and x[:1] and x[0] is HELD

    given = tree_map(lambda x: x[1](*x[2:]) if is_held(x) else x, (args, kwargs), is_leaf=is_held)
    return function(*given[0], **given[1])
