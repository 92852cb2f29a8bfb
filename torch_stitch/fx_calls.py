"""What a library call runs for an FX node: the op, or a form of it that fits our memory."""

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map

from torch_stitch.fx_ops import DTYPES, result_of

HELD = object()


def find_in_place_form(node):
    """What writes its first operand: for an op whose result only goes back into an argument."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node) or first.op != "placeholder" or len(first.users) != 2:
        return None
    stored = any(str(n.target) == "aten.copy_.default" and n.args[1] is node for n in first.users)
    same = stored and node.meta["val"].stride() == first.meta["val"].stride()
    if not same or not str(node.target).startswith("aten."):
        return None
    packet = getattr(torch.ops.aten, str(node.target).split(".")[1] + "_", None)
    return getattr(packet, node.target._overloadname, None)


def owning(node):
    """The op itself; one that copies for a view of memory that kernels use again."""
    target = node.target
    is_view = getattr(target, "is_view", False)
    if not is_view or not any(result_of(n).dtype in DTYPES for n in (node, node.args[0])):
        return target
    packet = getattr(torch.ops.aten, f"{target._schema.name.removeprefix('aten::')}_copy", None)
    keeps_strides = target is torch.ops.aten.as_strided.default  # which its copying form does not
    if packet and target._overloadname in packet.overloads() and not keeps_strides:
        return getattr(packet, target._overloadname)
    return lambda *args, **kwargs: tree_map(torch.clone, target(*args, **kwargs))


def call_in_turn(_, op, *args, **kwargs):
    """What with_effects does, which takes ten times as long to find that out."""
    result = op(*args, **kwargs)
    return torch.empty(0), *(result if isinstance(result, tuple) else (result,))


def part_of(whole, dtype, place):
    """A view as eager has it, in the storage of all of it; place: as place_of has it."""
    rank, view = len(place) // 2, torch.empty(0, dtype=dtype, device=whole.device)
    begin = (whole.storage_offset() * whole.element_size() + place[-1]) // view.element_size()
    return view.set_(whole.untyped_storage(), begin, place[:rank], place[rank:-1])


def call_with_made(function, *args, **kwargs):
    """Where HELD begins a tuple, `function` takes what its second makes of the rest."""

    def is_held(x):
        return isinstance(x, tuple) and x[:1] and x[0] is HELD

    given = tree_map(lambda x: x[1](*x[2:]) if is_held(x) else x, (args, kwargs), is_leaf=is_held)
    return function(*given[0], **given[1])
