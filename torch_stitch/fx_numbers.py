"""Sizes and numbers that are known at run time only: Dims, and formulas over what tensors hold."""

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import sympy
import torch
from torch.utils._sympy.printers import PythonPrinter

from torch_stitch import _core
from torch_stitch._core import Dim, NodeId, UnsupportedError

# Torch 2.11 makes NaN of what 8-bit floats have no value for.
DTYPES = {t: n for t, n in _core.dtypes.items() if not torch.tensor(500.0).to(t).float().isnan()}
NARROW = {DTYPES[t]: t for t in DTYPES if t.is_floating_point and t.itemsize < 4}
# By the class of an expression.  Of sizes, with polynomials of them: what the core has for it.
OPAQUE_SIZES = dict.fromkeys(("FloorDiv", "CleanDiv", "IntTrueDiv"), "floordiv")
OPAQUE_SIZES |= {"Mod": "mod", "PythonMod": "mod", "Max": "max", "max": "max", "Min": "min"}
DIM_FORMS = (*OPAQUE_SIZES, "Add", "Mul", "Pow")
# Of sizes and numbers: the op, and what it takes.
FORMULAS: dict[str, tuple[str, str | None]] = {
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
Size: TypeAlias = int | torch.SymInt
Number: TypeAlias = bool | int | float | torch.SymInt | torch.SymFloat | torch.SymBool
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
DATA_HINT = 1024  # a size that depends on data
Place = tuple[int, int | None]  # of an argument, and the dimension of it, or what it is itself


def hint_of(size: torch.SymInt) -> int:
    """A likely value of a size: guides choices, never correctness."""
    return size.node.hint or 1 if isinstance(size.node.hint, int) else DATA_HINT


evaluate = functools.cache(lambda text: eval(text, {"math": math, "torch": torch}))


def work_out(function: str, places: Iterable[Place], arguments: list[Any]) -> Any:
    """Calls a function's text with arguments, or sizes of them."""
    given = (arguments[at] if d is None else arguments[at].shape[d] for at, d in places)
    return evaluate(function)(*given)


def formula(expression: sympy.Expr, find: Callable[[sympy.Symbol], Any]) -> tuple[str, list[Any]]:
    """The text of a function that makes it, and what `find` has for each of its symbols."""
    symbols = sorted(expression.free_symbols, key=str)
    text = f"lambda {', '.join(map(str, symbols))}: {PythonPrinter().doprint(expression)}"
    return text, [find(symbol) for symbol in symbols]


def whole(number: float) -> int:
    """What an integral type makes of it; nothing is asked of infinities."""
    return int(number) if -(2**63) <= number < 2**63 else 0


class Numbers:
    """Those of one import: `b` is the core's builder, `calls` its table of calls and extras."""

    def __init__(self, argument_count: int) -> None:
        self.b, self.calls, self.argument_count = _core.Builder(), _core.CallTable(), argument_count
        self.symbols: dict[sympy.Expr, Dim] = {}  # and expressions of them
        self.sizes: dict[sympy.Expr, tuple[Place, torch.SymInt]] = {}  # among the arguments
        self.numbers: dict[sympy.Expr, NodeId] = {}  # symbols of what tensors hold
        self.held: dict[NodeId, Number] = {}  # of the graph, in eager tensors on the CPU

    def extra_position(self, extra: Any) -> int:
        self.calls.extras.append(extra)
        return self.argument_count + len(self.calls.extras) - 1

    def argument(self, position: int, size: torch.SymInt) -> Dim:
        """A size or number among the arguments; what data decided in an earlier graph may be 0."""
        env, expression = size.node.shape_env, size.node.expr
        is_positive = isinstance(size.node.hint, int) and env.bound_sympy(expression).lower > 0
        known = [mod.args[1] for mod in env.divisible if mod.args[0] == expression]
        divisors = [int(divisor) for divisor in known if divisor.is_Integer]
        return self.b.symbol(position, hint_of(size), bool(is_positive), math.lcm(*divisors))

    def dim(self, size: Size) -> Dim:
        return self.dim_of(size.node.expr) if isinstance(size, torch.SymInt) else Dim(int(size))

    def dims(self, sizes: Iterable[Size]) -> list[Dim]:
        return [self.dim(size) for size in sizes]

    def dim_of(self, expression: sympy.Expr) -> Dim:
        if expression not in self.symbols:
            self.symbols[expression] = self.make_dim(expression)
        return self.symbols[expression]

    def make_dim(self, expression: sympy.Expr) -> Dim:
        kind, parts = type(expression).__name__, expression.args
        if expression.is_Integer:
            return Dim(int(expression))
        if expression in self.sizes and (expression.is_Symbol or kind not in DIM_FORMS):
            place, size = self.sizes[expression]
            own = functools.partial(work_out, "lambda size: size", [place])
            return self.argument(self.extra_position(own), size)
        if expression.is_Symbol and expression not in self.numbers:
            raise UnsupportedError(f"no call before it yields the size {expression}")
        if expression.is_Pow and parts[1].is_Integer and parts[1] > 0:
            return functools.reduce(operator.mul, [self.dim_of(parts[0])] * int(parts[1]))
        numerator, denominator = expression.as_numer_denom()
        if denominator != 1:  # an exact division
            return self.b.opaque("floordiv", *map(self.dim_of, (numerator, denominator)))
        if expression.is_Add or expression.is_Mul:
            combine: Any = operator.add if expression.is_Add else operator.mul
        elif kind in OPAQUE_SIZES:
            combine = functools.partial(self.b.opaque, OPAQUE_SIZES[kind])
        elif expression.free_symbols <= self.sizes.keys():  # before the program starts
            text, found = formula(expression, self.sizes.get)
            function = functools.partial(work_out, text, [place for place, _ in found])
            hints = [DATA_HINT if size.node.hint is None else size.node.hint for _, size in found]
            hint = max(1, evaluate(text)(*hints))
            return self.b.symbol(self.extra_position(function), hint, False)
        else:  # what tensors hold, read when the program is there
            held = self.b.cast(self.number_of(expression), "i64")
            op = torch.ops.aten._local_scalar_dense.default
            row = self.calls.add_call(str(op), op, (_core.Operand(0),), {})
            self.b.library(self.calls, row, [held], [], False, [])
            return self.b.late_symbol(row, 0, -1, DATA_HINT)
        return functools.reduce(combine, map(self.dim_of, parts))

    def call_python(self, expression: sympy.Expr) -> NodeId:
        """A formula that the core has no op for, as a call that makes a tensor of held numbers."""
        text, held = formula(expression, self.number_of)

        def compute(*held: torch.Tensor) -> torch.Tensor:
            number = evaluate(text)(*map(torch.Tensor.item, held))
            return held[0].new_tensor(number, dtype=torch.double)

        row = self.calls.add_call(text, compute, tuple(map(_core.Operand, range(len(held)))), {})
        made = [_core.TensorType("f64", [], [])]
        return self.b.library(self.calls, row, held, made, False, [])[0]

    def number_of(self, expression: sympy.Expr, wanted: str = "i64") -> NodeId:
        """A formula over sizes (as `wanted`) and held numbers: Python's value, i64, f64 or bool."""
        kind, parts = type(expression).__name__, expression.args
        is_whole = getattr(expression, "is_integer", False)
        if expression in self.numbers:
            held = self.b.reshape(self.numbers[expression], [])
            return self.b.cast(held, "i64" if is_whole else "f64")
        if kind in ("BooleanTrue", "BooleanFalse"):
            return self.b.full("bool", 0, bool(expression))
        if expression.is_number:
            return self.b.full("i64" if is_whole else "f64", float(expression), whole(expression))
        is_size = expression.is_Symbol or expression in self.symbols or kind in DIM_FORMS
        if is_whole and is_size and not expression.free_symbols & self.numbers.keys():
            return self.b.size_value(wanted, self.dim_of(expression))
        if kind in ("ToFloat", "Identity"):
            value = self.number_of(parts[0], "f64")
            return self.b.cast(value, "f64" if kind == "ToFloat" else "i64")
        if kind == "Piecewise":
            *cases, (otherwise, _) = parts
            value = self.number_of(otherwise, wanted)
            for case, holds in reversed(cases):
                chosen = [self.number_of(holds), self.number_of(case, wanted), value]
                value = self.b.pointwise("select", chosen)
            return value
        op, taken = FORMULAS.get(kind) or (kind.removeprefix("OpaqueUnaryFn_"), "f64")
        if kind not in FORMULAS and op == kind:
            self.numbers[expression] = self.call_python(expression)
            return self.number_of(expression)
        taken = taken or ("i64" if all(part.is_integer for part in parts) else "f64")
        values = [self.b.cast(self.number_of(part, taken), taken) for part in parts]
        folded = functools.reduce(lambda a, b: self.b.pointwise(op, [a, b]), values)
        value = folded if len(values) > 1 else self.b.pointwise(op, values)
        return self.b.cast(value, "i64") if is_whole else value

    def scalar(self, number: NodeId | Number, dtype: str | None = None, is_exact: bool = False,
               rounds: bool = True) -> NodeId:
        """A value, a Python number or a symbolic one as a value; is_exact: kept in f32."""
        dtype = dtype or ("bool" if isinstance(number, (bool, torch.SymBool)) else "f64")
        if is_exact and isinstance(number, NodeId):
            number = self.held.get(number, number)
        if isinstance(number, NodeId):
            return self.b.cast(number, dtype, rounds)
        if isinstance(number, SYMBOLIC):
            return self.b.cast(self.number_of(number.node.expr, dtype), dtype)
        if dtype in NARROW and not is_exact:
            number = torch.tensor(number, dtype=NARROW[dtype]).item()
        return self.b.full(dtype, float(number), whole(number))
