"""Aten ops that are taken apart before import, so that what remains stitches.

Library calls (products, convolutions, attention, gradients of embeddings) stay whole, and so does
what the importer knows directly (var, all).
"""

import functools
import importlib
import operator
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions, remove_decompositions
from torch.utils._pytree import tree_leaves

from torch_stitch import _core

aten, OURS = torch.ops.aten, torch.ops.torch_stitch

# Whole in the core ATen set, but only memory traffic.
TAKEN_APART = """
    arange _softmax _log_softmax _batch_norm_no_update _batch_norm_with_update_functional
    _native_batch_norm_legit _native_batch_norm_legit_functional batch_norm_backward
    _native_batch_norm_legit_no_training native_batch_norm native_layer_norm elu gelu hardtanh
    leaky_relu lift linalg_vector_norm narrow_copy tril_indices triu_indices
""".split()

# Taken apart by the core ATen set, better left whole; linspace of integers cuts off its ends first.
LEFT_WHOLE = """
    _scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention all baddbmm
    embedding_dense_backward frac index_add index_copy linspace select_scatter var var_mean
""".split()

RANDOM = "bernoulli exponential native_dropout rand rand_like uniform".split()
NORMAL = "normal_functional randn randn_like".split()  # on a CPU torch's are 3 times as fast

Form = Callable[..., Any]
NORMS = [aten._batch_norm_with_update_functional.default, aten._native_batch_norm_legit.no_stats]
NORMS += [aten._native_batch_norm_legit_functional.default]

QUANTISED = re.compile(r"quantized_decomposed::(de)?quantize_per_(tensor|channel|token)(\.tensor)?")


def _batch_norm(decomposition: Form, x: Tensor, weight: Any, bias: Any, *rest: Any) -> Any:
    """In training all of fp32 in fp64: means cancel, what fp32 drops of one every element lacks."""
    wide = [y.double() if isinstance(y, Tensor) else y for y in rest]  # running ones too
    results = decomposition(x.double(), weight, bias, *wide)
    if x.dtype != torch.float32 or not results[1].numel():  # not training
        return decomposition(x, weight, bias, *rest)
    return tuple(y.to(x.dtype) if y.dtype == results[0].dtype else y for y in results)


def _with_statistics(form: Form, x: Tensor, *args: Any, narrow: bool = False, **how: Any) -> Any:
    """Statistics of 16-bit inputs as eager keeps them: in fp32, or (narrow) as the weight is."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        return form(x, *args, **how)
    kept = getattr(args[0], "dtype", x.dtype) if narrow else torch.float32
    result, *statistics = form(x.to(torch.float32), *args, **how)
    return (result.to(x.dtype), *(s.to(kept) for s in statistics))


def _add_products(form: Form, x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Any:
    """Integers take the integral part of `value`."""
    is_whole = not any(t.is_floating_point() or t.is_complex() for t in (x, a, b))
    return form(x, a, b, value=int(value) if is_whole else value)


def _norm(decomposition: Form, x: Tensor, order: Any = 2, *args: Any, **how: Any) -> Any:
    """Torch's takes an order that depends on data for infinity."""
    known = not isinstance(order, (torch.SymInt, torch.SymFloat))
    return decomposition(x, order, *args, **how) if known else NotImplemented


def _own(op: Form, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
    """As csrc/bindings has it; torch's are complex, own generators, what op makes nothing of."""
    dtype = kwargs.get("dtype") or getattr(args[0], "dtype", torch.float32)
    made = None if generator or dtype.is_complex else op(*args, **kwargs)
    return NotImplemented if all(result is None for result in tree_leaves(made)) else made


@functools.cache
def decompositions(target: str, fallback_random: bool = False) -> dict[Any, Form]:
    """The decomposition table for graphs that are planned for `target` ("cpu", "h200", ...)."""
    table = dict(core_aten_decompositions())
    remove_decompositions(table, [getattr(aten, name) for name in LEFT_WHOLE])
    table |= get_decompositions([getattr(aten, name) for name in TAKEN_APART])
    whole = ["random", *RANDOM * fallback_random, *NORMAL * (fallback_random or target == "cpu")]
    whole += ["convolution_backward"] * (target != "cpu")
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # defines its ops
    meaning = torch._C.DispatchKey.CompositeExplicitAutograd
    for full_name in torch._C._dispatch_get_all_op_names():
        space, _, name = full_name.partition("::")
        packet, _, overload = name.partition(".")
        find = operator.attrgetter(f"{packet}.{overload or 'default'}")
        is_functional = not (packet.endswith("_") or overload.endswith("out"))
        if space == "torch_stitch" and hasattr(aten, packet) and packet not in whole:
            table[find(aten)] = functools.partial(_own, find(OURS))
        repeats = full_name.startswith("aten::_foreach_") and is_functional
        if repeats or QUANTISED.fullmatch(full_name):
            op = find(getattr(torch.ops, space))
            table[op] = functools.partial(op._op_dk, meaning)
    table[aten._foreach_zero.default] = lambda xs: [*map(torch.zeros_like, xs)]
    table[aten._foreach_copy.default] = lambda xs, sources, *_: [*map(aten.copy, xs, sources)]
    table[aten._unique.default] = lambda *given: aten._unique2(*given)[:2]  # sizes: 2.12 guesses
    norm: Form = _batch_norm if target == "cpu" else _with_statistics
    wrapped = dict.fromkeys(NORMS, norm)
    wrapped |= {aten.addcmul.default: _add_products, aten.linalg_vector_norm.default: _norm}
    wrapped |= {aten.native_layer_norm.default: _with_statistics} if target != "cpu" else {}
    wrapped[aten.native_group_norm.default] = functools.partial(_with_statistics, narrow=True)
    for op, form in wrapped.items():
        table[op] = functools.partial(form, table[op])
    table = dict.fromkeys(operator.attrgetter(n)(aten) for n in _core.elementwise_ops()) | table
    decompose = functools.partial(_core.decompose, target == "cpu")
    return {op: functools.partial(decompose, op, form) for op, form in table.items()}
