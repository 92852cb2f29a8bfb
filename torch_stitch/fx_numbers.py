"""Numbers that are only known at run time: formulas over sizes and over what tensors hold."""

import functools
import math

import sympy
import torch
from torch.utils._sympy.printers import PythonPrinter

from torch_stitch import _core

# By the class of an expression.  Of sizes, with polynomials of them: what the core has for it.
OPAQUE_SIZES = dict.fromkeys(("FloorDiv", "CleanDiv", "IntTrueDiv"), "floordiv")
OPAQUE_SIZES |= {"Mod": "mod", "PythonMod": "mod", "Max": "max", "max": "max", "Min": "min"}
DIM_FORMS = (*OPAQUE_SIZES, "Add", "Mul", "Pow")
# Of sizes and numbers: the op, and what it takes.
FORMULAS = {
    **dict.fromkeys(("FloatTrueDiv", "IntTrueDiv"), ("div", "f64")),
    **dict.fromkeys(("FloatPow", "Pow", "PowByNatural"), ("pow", "f64")),
    **{f"{mode}ToInt": (mode.lower(), "f64") for mode in ("Ceil", "Floor", "Round")},
    **dict.fromkeys(("TruncToInt", "TruncToFloat"), ("trunc", "f64")),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), ("div_floor", None)),
    **dict.fromkeys(("Mod", "PythonMod"), ("remainder", None)),
    **{f"BitwiseFn_bitwise_{name}": (f"bitwise_{name}", "i64") for name in ("and", "or", "xor")},
    **{name: (name.lower(), None) for name in ("Add", "Mul", "Abs")},
    **{name: (f"{name.lower()}imum", None) for name in ("Min", "Max")},
    **{name: (f"logical_{name.lower()}", "bool") for name in ("And", "Or", "Not")},
    **{getattr(sympy, op).__name__: (op.lower(), None) for op in "Eq Ne Lt Le Gt Ge".split()},
}
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
DATA_HINT = 1024  # a size that depends on data


def hint_of(size):
    """A likely value of a size: guides choices, never correctness."""
    return size.node.hint or 1 if isinstance(size.node.hint, int) else DATA_HINT


evaluate = functools.cache(lambda text: eval(text, {"math": math, "torch": torch}))


def work_out(function, places, arguments):
    """Calls a function's text with arguments, or sizes of them: (position, dimension or None)."""
    given = (arguments[at] if d is None else arguments[at].shape[d] for at, d in places)
    return evaluate(function)(*given)


def formula(expression, find):
    """The text of a function that makes it, and what `find` has for each of its symbols."""
    symbols = sorted(expression.free_symbols, key=str)
    text = f"lambda {', '.join(map(str, symbols))}: {PythonPrinter().doprint(expression)}"
    return text, [find(symbol) for symbol in symbols]


def call_python(im, expression):
    """A formula that the core has no op for, as a call that makes a tensor of held numbers."""
    text, held = formula(expression, functools.partial(number_of, im))

    def compute(*held):
        return held[0].new_tensor(evaluate(text)(*map(torch.Tensor.item, held)), dtype=torch.double)

    operands, made = tuple(map(_core.Operand, range(len(held)))), _core.TensorType("f64", [], [])
    row = im.calls.add_call(text, compute, operands, {})
    return im.b.library(im.calls, row, held, [made], False, [])[0]


def whole(number):
    """What an integral type makes of it; nothing is asked of infinities."""
    return int(number) if -(2**63) <= number < 2**63 else 0


def number_of(im, expression, wanted="i64"):
    """A formula over sizes (as `wanted`) and held numbers: Python's value, i64, f64 or bool."""
    kind, parts = type(expression).__name__, expression.args
    is_whole = getattr(expression, "is_integer", False)
    if expression in im.numbers:
        held = im.b.reshape(im.numbers[expression], [])
        return im.b.cast(held, "i64" if is_whole else "f64")
    if expression.is_number or kind in ("BooleanTrue", "BooleanFalse"):
        number = expression == True if kind.startswith("Boolean") else expression  # noqa: E712
        dtype = "bool" if kind.startswith("Boolean") else "i64" if is_whole else "f64"
        return im.b.full(dtype, float(number), whole(number))
    is_size = expression.is_Symbol or expression in im.symbols or kind in DIM_FORMS
    if is_whole and is_size and not expression.free_symbols & im.numbers.keys():
        return im.b.size_value(wanted, im.dim_of(expression))
    if kind in ("ToFloat", "Identity"):
        return im.b.cast(number_of(im, parts[0], "f64"), "f64" if kind == "ToFloat" else "i64")
    if kind == "Piecewise":
        *cases, (otherwise, _) = parts
        value = number_of(im, otherwise, wanted)
        for case, held in reversed(cases):
            case, held = number_of(im, case, wanted), number_of(im, held)
            value = im.b.pointwise("select", [held, case, value])
        return value
    op, taken = FORMULAS.get(kind) or (kind.removeprefix("OpaqueUnaryFn_"), "f64")
    if kind not in FORMULAS and op == kind:
        im.numbers[expression] = call_python(im, expression)
        return number_of(im, expression)
    if taken is None:
        taken = "i64" if all(part.is_integer for part in parts) else "f64"
    values = [im.b.cast(number_of(im, part, taken), taken) for part in parts]
    folded = functools.reduce(lambda a, b: im.b.pointwise(op, [a, b]), values)
    value = folded if len(values) > 1 else im.b.pointwise(op, values)
    return im.b.cast(value, "i64") if is_whole else value
