"""explain(): what would be launched for a function, on a device that need not be there.

The function is traced on stand-ins for its inputs.  Where it is one graph, nothing of it runs.
Where Python stands between graphs, they run op by op, on copies: Python sees what it would see.
"""

import copy
import functools
import gc
import json

import torch
from torch.utils._pytree import tree_leaves, tree_map

from torch_stitch import _core, backend

SUMS = ("bytes_touched", "bytes_planned", "bytes_unfused", "bytes_compulsory")
KEPT = "    {} in {home}: {registers} registers a thread, {shared_bytes} bytes a block"
TILED = "    {} through tiles on chip: {rows} rows, {bytes} bytes a block"
LISTS = ("kernels", "library_calls", "cuts")
CPU_ATTENTION = "aten._scaled_dot_product_flash_attention"
# Each explained function has a backend of its own: no limit must make one run for real.
TRACING = {
    "automatic_dynamic_shapes": False,
    "recompile_limit": 1 << 30,
    "accumulated_recompile_limit": 1 << 30,
}


class Report:
    """What explain() found: print() shows a table, to_json() gives all of it."""

    def __init__(self, plan):
        self.plan = plan

    def to_json(self):
        return json.dumps(self.plan, indent=1)

    def __str__(self):
        if "forward" not in self.plan:
            return render(self.plan)
        return "\n\n".join(f"{part}\n{render(plan)}" for part, plan in self.plan.items())


def explain(fn, *inputs, target=None, policy="auto", attention="auto", training=False):
    """Plans and compiles fn(*inputs) for `target` without running it; the inputs stay as they are.

    `target` is a row of the device table; without it, the device of the inputs.
    """
    options = {"policy": policy, "attention": attention} | ({"target": target} if target else {})
    _core.check_options(options)
    reports = {"inference": [], "forward": [], "backward": []}

    def compile_graph(gm, found):
        return backend.compile_parts(gm, options, found, torch.device("cpu"), load=False)[1]

    for kind, compiled in trace_graphs(compile_graph, fn, inputs, target, training):
        reports[kind].append(compiled)
    forward = merge_reports(reports["inference"] + reports["forward"])
    both = {"forward": forward, "backward": merge_reports(reports["backward"])}
    return Report(both if training else forward)


def merge_reports(graphs):
    """One plan of a function's graphs, in their order; of a kernel what is the same in each run."""
    reports = [graph.report() for graph in graphs]
    merged = {name: [row for r in reports for row in r[name]] for name in LISTS}
    for kernel in merged["kernels"]:
        kernel["scheme"] = {row["value"]: row["scheme"] for row in kernel.pop("schemes")}
        for name in ("text", "compile_ms", "from_cache"):
            kernel.pop(name)
    return merged | {name: sum(r[name] for r in reports) for name in SUMS} | {
        "target": reports[0]["target"] if reports else None,
        "launches": len(merged["kernels"]) + len(merged["library_calls"]),
        "graph_breaks": max(0, len(reports) - 1),
    }


def trace_graphs(see, fn, inputs, target=None, training=False):
    """(kind, see(graph, target)) of each graph of fn(*inputs), in the order in which they come."""
    fn = getattr(fn, "_torchdynamo_orig_callable", getattr(fn, "_orig_mod", fn))
    try:
        return trace_with(StandIns(with_values=False), see, fn, inputs, target, training)
    except RuntimeError:  # no single graph, or what is said again
        return trace_with(StandIns(with_values=True), see, fn, inputs, target, training)


def trace_with(stand_ins, see, fn, inputs, target, training):
    graphs = []

    def keep(found, kind, gm, example_inputs):
        graphs.append((kind, see(name_for(gm, found), found)))
        if stand_ins.with_values:
            run = backend.by_dispatcher(gm)
            return backend.boxed(lambda args: run(stand_ins.take(args)))
        return backend.boxed(functools.partial(answer_with, gm.graph.output_node().args[0]))

    def plan(gm, example_inputs):
        found = target or backend.find_target(backend.devices_of(gm, example_inputs))
        return backend.trace(gm, example_inputs, found, functools.partial(keep, found))

    fn, inputs = stand_ins.replace(fn, inputs)

    def explained(*inputs):
        return fn(*inputs)

    explained.__code__ = explained.__code__.replace()  # Dynamo caches by code
    with torch._dynamo.config.patch(TRACING), torch.set_grad_enabled(training):
        run = torch.compile(explained, backend=plan, fullgraph=not stand_ins.with_values)
        results = run(*inputs)
        if training:
            run_backward(tree_leaves(results))
    return graphs


def run_backward(results):
    """Asks for the gradients of every leaf, which leaves their `grad` alone."""
    results = [x for x in results if isinstance(x, torch.Tensor) and x.requires_grad]
    waiting, seen, leaves = [x.grad_fn for x in results], set(), []
    while waiting:
        step = waiting.pop()
        if step is not None and step not in seen:
            seen.add(step)
            leaves += [step.variable] if hasattr(step, "variable") else []
            waiting += [following for following, _ in step.next_functions]
    if leaves:
        torch.autograd.grad(results, leaves, [*map(torch.empty_like, results)], allow_unused=True)


def is_plain(x):
    return type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout == torch.strided


class StandIns:
    """Copies that tracing may write to: tensors in layout alone, or with their values."""

    def __init__(self, with_values):
        self.with_values, self.storages, self.memo = with_values, {}, {}
        self.given = [*filter(is_plain, gc.get_objects())] if with_values else []
        self.theirs = {x.untyped_storage()._cdata for x in self.given}

    def of(self, x):
        if not is_plain(x) or id(x) in self.memo:
            return self.memo.get(id(x), x)
        storage = x.untyped_storage()
        if storage._cdata not in self.storages:
            memory = torch.empty(storage.nbytes(), dtype=torch.uint8, device=x.device)
            self.storages[storage._cdata] = memory.untyped_storage()
            if self.with_values:
                memory.untyped_storage().copy_(storage)
        twin = torch.empty(0, dtype=x.dtype, device=x.device)
        twin.set_(self.storages[storage._cdata], x.storage_offset(), x.shape, x.stride())
        if isinstance(x, torch.nn.Parameter):
            twin = torch.nn.Parameter(twin, x.requires_grad)
        twin.__dict__.update(x.__dict__)
        self.memo[id(x)] = twin.requires_grad_(x.requires_grad)
        self.given.append(x)  # its id is taken
        return self.memo[id(x)]

    def replace(self, fn, inputs):
        inputs = tree_map(self.of, inputs)
        if isinstance(fn, torch.nn.Module):
            tree_map(self.of, [*fn.parameters(), *fn.buffers()])
            fn = copy.deepcopy(fn, self.memo)
        return fn, inputs

    def take(self, args):
        """The arguments of a graph, with twins of what was there before: globals of the caller."""
        held, args[:] = list(args), []
        memory = [is_plain(x) and x.untyped_storage()._cdata for x in held]
        return [self.of(x) if place in self.theirs else x for x, place in zip(held, memory)]


def name_for(gm, target):
    """Attention is traced as what CPUs call; a GPU's plan names what GPUs call."""
    nodes = gm.graph.nodes if target not in (None, "cpu") else ()
    for node in (n for n in nodes if str(n.target).startswith(f"{CPU_ATTENTION}_for_cpu")):
        packet, _, overload = str(node.target).rpartition(".")
        query = node.args["backward" in packet].meta["val"]
        is_flash = query.dtype.itemsize == 2 and query.shape[-1] <= 256
        if not is_flash or node.kwargs.get("attn_mask") is not None:
            packet = packet.replace("flash", "efficient")
        node.meta["runs_as"] = f"{packet.replace('_for_cpu', '')}.{overload}"
    return gm


def answer_with(results, args):
    """What a compiled graph returns while nothing runs."""
    args.clear()
    return [uninitialised(getattr(r, "meta", {"val": r}).get("val")) for r in results]


def uninitialised(value):
    if isinstance(value, torch.SymInt):
        if value.node.hint is None:
            raise RuntimeError("nothing answers for a size that depends on data but to run")
        return value.node.hint
    if not isinstance(value, torch.Tensor):
        return value
    layout = [list(map(uninitialised, sizes)) for sizes in (value.shape, value.stride())]
    return torch.empty_strided(*layout, dtype=value.dtype, device=value.device)


def render(plan):
    """The plan as a table."""
    lines = [
        f"plan for {plan['target']}: {len(plan['kernels'])} kernels, "
        f"{len(plan['library_calls'])} library calls, {plan['graph_breaks']} graph breaks",
        f"{'kernel':48}    grid x block    regs  spills  shared      MB      us  policy",
    ]
    for row in plan["kernels"]:
        lines.append(
            f"{row['name'][:47]:48}{row['grid']:>9} x {row['block']:<4}"
            f"{row['registers'] if row['registers'] >= 0 else '-':>8}"
            f"{row['spill_bytes']:>8}{row['shared_bytes']:>8}"
            f"{(row['bytes_read'] + row['bytes_written']) / 1e6:>8.2f}{row['predicted_us']:>8.1f}"
            f"  {row['policy']}"
        )
        lines += map("    {op} {location}".format_map, row["ops"])
        lines += (KEPT.format(value, **place) for value, place in row["persistent"].items())
        lines += (TILED.format(value, **tile) for value, tile in row["tiles"].items())
    for row in plan["library_calls"]:
        moved = (row["bytes_read"] + row["bytes_written"]) / 1e6
        lines.append(f"{row['name'] + ' ' + row['location']:88}{moved:>8.2f}")
    lines += map("cut {edge}: rule {rule}, {words} {remedy}".format_map, plan["cuts"])
    totals = (f"{key.removeprefix('bytes_')} {plan[key] / 1e6:.2f}" for key in SUMS)
    return "\n".join([*lines, f"MB: {', '.join(totals)}"])
