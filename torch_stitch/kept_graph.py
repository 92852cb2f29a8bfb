"""A compiled AOT graph, and its form in torch's cache of AOT graphs: text, and rows of calls.

A process that finds one there neither traces the graph nor imports it: it plans the text, and finds
its kernels in the cache of kernels.  The cache is torch's own (TORCHINDUCTOR_CACHE_DIR,
torch.compiler.save_cache_artifacts), and so are its keys and guards; `KeptGraph` is what it holds.
"""

import contextlib
import functools
import io
import pickle
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import NamedTuple

import torch
from torch._functorch import config
from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
from torch._guards import TracingContext
from torch._higher_order_ops.effects import with_effects
from torch._inductor.output_code import OutputCode
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import unset_fake_temporarily

from torch_stitch import _core
from torch_stitch.devices import find_target
from torch_stitch.fx_calls import call_in_turn

PLAIN = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)
NAMED = (type, FunctionType, BuiltinFunctionType)  # found again by module and name
OURS = (functools.partial, _core.Graph, _core.Operand, _core.Argument, _core.Dim)
FEWEST_OPS = 100  # Inductor's lowerings are imported for a key, 1.2 s: as long as tracing takes
FLAGS = "force_autograd_cache bundled_autograd_cache force_non_lazy_backward_lowering".split()


def keep_saved_tensors():
    """No backward pass of ours reuses them, so that a graph may be retained: torch would refuse
    where one was compiled before it was called.
    """
    tracing = TracingContext.try_get()
    if tracing and tracing.fw_metadata:
        tracing.fw_metadata.bw_donated_idxs = []


class Parts(NamedTuple):
    """What a graph is compiled from, its device known; from `graph` on as in fx_import.Importer."""

    options: dict
    device: torch.device
    graph: _core.Graph
    rows: list
    extras: list
    number_outputs: list
    views: list


class KeptGraph(OutputCode):
    """Callable like any AOT graph; without `parts`, each process traces and compiles it anew."""

    def __init__(self, run, parts=None):
        self.run, self.parts = run, parts
        self._boxed_call = True  # of the object: wrappers take over what that has

    def __call__(self, args):
        return self.run(args)

    def prepare_for_serialization(self):
        """Of a copy; nobody is warned of what has no form in the cache."""
        if self.parts is None:
            raise BypassAOTAutogradCache("torch_stitch: not all of this graph is stitched")
        if isinstance(self.parts, Parts):
            saved = io.BytesIO()
            with unset_fake_temporarily():
                PartsPickler(saved).dump(tuple(self.parts))
            self.run, self.parts = None, saved.getvalue()

    def post_compile(self, *_):
        with unset_fake_temporarily():
            parts, calls = Parts(*pickle.loads(self.parts)), _core.CallTable()
        for row in parts.rows:
            calls.add_call(*row)
        target = find_target({parts.device}, parts.options)
        request = parts.graph, calls, parts.options, target, True, parts.device.index or 0
        self.run = link(_core.compile(*request), parts)

    def set_triton_bundle(self, _):
        """No kernel is Triton's."""


class PartsPickler(pickle.Pickler):
    """Takes what rows of calls hold; anything else would be another object where it is loaded."""

    def reducer_override(self, x):
        if x is call_in_turn or x is with_effects:  # a graph of the cache is given no tokens
            raise BypassAOTAutogradCache("torch_stitch: tokens order the calls")
        if isinstance(x, OpOverload):
            return find_op, (x._schema.name, x._overloadname)
        if isinstance(x, HigherOrderOperator) and find_higher_order(x._name) is x:
            return find_higher_order, (x._name,)
        if type(x) is torch.Tensor:
            return make_tensor, (x.tolist(), x.shape, x.dtype, x.device)
        if not isinstance(x, (*PLAIN, *NAMED, *OURS)):
            raise BypassAOTAutogradCache(f"torch_stitch: a call takes {x!r:.40}")
        return NotImplemented


def find_op(name, overload):
    space, op = name.split("::")
    return getattr(getattr(getattr(torch.ops, space), op), overload)


def find_higher_order(name):
    return getattr(torch.ops.higher_order, name, None)


def make_tensor(numbers, shape, dtype, device):
    """A constant of the user's code; torch.load would make it fake while torch traces."""
    return torch.tensor(numbers, dtype=dtype, device=device).view(shape)


def link(compiled, parts):
    """`compiled` with what its calls need before and after: extra arguments, the stream, results
    that are numbers or views.
    """
    on_cuda = parts.device.type == "cuda"
    index = (parts.device.index or 0) if on_cuda else None
    extras, numbers, views = parts.extras, parts.number_outputs, parts.views
    if not (extras or numbers or views or on_cuda):
        return compiled

    def run(args):
        args += [give_extra(args, x, index) if isinstance(x, tuple) else x for x in extras]
        stream = torch._C._cuda_getCurrentRawStream(index) if on_cuda else 0
        results = compiled(args, stream)
        for i in numbers:
            results[i] = results[i].item()
        for i, rank in reversed(views):
            place = [results.pop() for _ in range(2 * rank + 1)]
            results[i] = results[i].as_strided(place[:rank:-1], place[rank:0:-1], place[0])
        return results

    return run


def give_extra(args, extra, device):
    """What an argument tells beside itself: a size of a tensor, a number as a tensor."""
    value, what = args[extra[0]], extra[1]
    if isinstance(what, int):
        return value.shape[what]
    return torch.full((), value, dtype=what, device=device)


def boxed(run):
    """For AOTAutograd: `run` takes a list of arguments and empties it."""
    run._boxed_call = True
    return run


def keep_graphs(gm, *identity):
    """While this lasts, tracing `gm` asks torch's cache first; `identity` is a part of the key."""
    if len(gm.graph.nodes) < FEWEST_OPS or not all(hasattr(config, flag) for flag in FLAGS):
        return contextlib.nullcontext()
    gm.torch_stitch = [package_files(), *identity]  # the key holds what a module has
    return config.patch(dict.fromkeys(FLAGS, True))


@functools.cache
def package_files():
    """Another build of this package is another backend."""
    files = [*Path(__file__).parent.glob("*.py"), Path(_core.__file__)]
    return sorted((x.name, x.stat().st_size, x.stat().st_mtime_ns) for x in files)
