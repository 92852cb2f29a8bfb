"""What random programs are made of: steps, drawn by a seed, that are legal for the values so far.

A step is (op, positions of its operands, attribute).  Values are small, so that its legality is
tried out; extents of 0 and 1 are among them.  Steps whose result jumps where one value
crosses another are drawn for f32 and f64 only: in 16 bits rounding decides them.
"""

import random
from typing import NamedTuple

import torch

UNARY = "neg abs exp tanh sigmoid relu sin square erf sqrt_abs log1p_abs silu".split()
BINARY = "add sub mul maximum minimum div_safe hypot".split()
REDUCE = "sum mean amax amin var std prod_small".split()
WRITERS = "index_add scatter_max slice_scatter write index_put".split()
MOVES = "permute slice cat flip pad roll expand gather select stack strided reshape cast".split()
EXTENTS = (1, 2, 3, 5, 7, 8, 12, 16, 17, 33, 64)
SMALL = (0, 1, 2, 3, 5, 8)
MOST_ELEMENTS = 20_000
DTYPES = (torch.float32,) * 5 + (torch.bfloat16, torch.float16, torch.float64)
NARROW = (torch.bfloat16, torch.float16)


class Program(NamedTuple):
    seed: int
    inputs: list
    steps: list
    outputs: list

    def __call__(self, *inputs):
        made = list(inputs)
        for step in self.steps:
            made.append(apply(step, made))
        return tuple(made[i] for i in self.outputs)

    def __str__(self):
        inputs = [f"{x.dtype} {tuple(x.shape)} {x.stride()}" for x in self.inputs]
        lines = [f"inputs {inputs} outputs {self.outputs}"]
        return "\n  ".join(lines + [f"{len(inputs) + i} {s}" for i, s in enumerate(self.steps)])


def write(op, x, attribute):
    """x with rows of its own, halved and shuffled, combined into others of it along a dimension."""
    dim, rows, taken = attribute
    index, source = torch.tensor(rows), x.index_select(dim, torch.tensor(taken)) * 0.5
    if op == "index_add":
        return x.index_add(dim, index, source)
    if op == "scatter_max":
        index = index.reshape([-1 if d == dim else 1 for d in range(x.dim())])
        return x.scatter_reduce(dim, index.expand_as(source), source, "amax")
    if op == "slice_scatter":
        return x.slice_scatter(source, dim, x.shape[dim] - len(rows))
    y = x.clone()
    if op == "index_put":
        y.movedim(dim, 0)[index[:1]] = source.movedim(dim, 0)[:1]
        return y
    y.select(dim, rows[0]).mul_(2)
    y.index_copy_(dim, index[:1], source.narrow(dim, 0, 1))
    return y


def compute(op, x, attribute):
    """Pointwise ops and reductions of one operand."""
    if op == "sqrt_abs":
        return (x.abs() + 0.25).sqrt()
    if op == "log1p_abs":
        return x.abs().log1p()
    if op == "silu":
        return torch.nn.functional.silu(x)
    if op == "argmax":
        return x.argmax(attribute[0], keepdim=True).to(x.dtype)
    if op == "roll_by_max":
        return torch.where(x == x.amax(attribute, keepdim=True), x * 0.5, x)
    if op in ("amax", "amin"):
        return getattr(x, op)(attribute, keepdim=True)
    if op in ("var", "std"):
        return getattr(x, op)(attribute, keepdim=True, correction=0)
    if op == "prod_small":
        return (x.clamp(-1, 1) * 0.1 + 1).prod(attribute[0], keepdim=True)
    if op == "softmax":
        return x.softmax(attribute)
    if op in REDUCE:
        return getattr(x, op)(attribute, keepdim=True)
    return getattr(torch, op)(x)


def combine(op, x, y):
    """Pointwise ops of two operands."""
    if op == "div_safe":
        return x / (y.abs() + 0.5)
    if op == "hypot":
        return (x * x + y * y + 0.25).sqrt()
    if op == "where":
        return torch.where(x > y, x, y * 0.5)
    return getattr(torch, op)(x, y)


def move(op, x, attribute, others):
    """Views, readers and casts."""
    if op == "slice":
        dim, start, stop = attribute
        return x.narrow(dim, start, stop - start)
    if op == "cat":
        return torch.cat((x, *others), attribute)
    if op == "stack":
        return torch.stack((x, x * 0.5), attribute)
    if op == "pad":
        return torch.nn.functional.pad(x, attribute, value=0.5)
    if op == "roll":
        return x.roll(*attribute)
    if op == "expand":
        return x.unsqueeze(attribute).expand([*x.shape[:attribute], 3, *x.shape[attribute:]])
    if op == "gather":
        dim, rows = attribute
        return x.index_select(dim, torch.tensor(rows, dtype=torch.int64))
    if op == "select":
        return x.select(*attribute)
    if op == "strided":
        dim, step = attribute
        return x[tuple(slice(None, None, step if d == dim else 1) for d in range(x.dim()))]
    if op == "cast":
        return x.to(attribute).to(x.dtype)
    return getattr(x, op)(attribute)


def apply(step, values):
    """The value of one step."""
    op, operands, attribute = step
    x, *others = (values[i] for i in operands)
    if op in BINARY or op == "where":
        return combine(op, x, *others)
    if op in WRITERS:
        return write(op, x, attribute)
    if op in MOVES:
        return move(op, x, attribute, others)
    return compute(op, x, attribute)


def draw_rows(rng, size):
    return [rng.randrange(size) for _ in range(rng.randint(1, size))]


def draw_move(rng, op, at, values):
    """A view or a reader of values[at]; it may not be legal."""
    x = values[at]
    dim = rng.randrange(max(1, x.dim()))
    size = x.shape[dim]
    start = rng.randrange(max(1, size))
    attribute = {
        "permute": lambda: tuple(rng.sample(range(x.dim()), x.dim())),
        "slice": lambda: (dim, start, rng.randint(start, size)),
        "cat": lambda: dim,
        "flip": lambda: (dim,),
        "pad": lambda: (rng.randint(0, 2), rng.randint(0, 3)),
        "roll": lambda: (rng.randint(-2, 2), dim),
        "expand": lambda: dim,
        "gather": lambda: (dim, draw_rows(rng, size)),
        "select": lambda: (dim, rng.choice((start, start - size))),
        "stack": lambda: dim,
        "strided": lambda: (dim, rng.randint(2, 3)),
        "cast": lambda: torch.float32 if x.dtype in NARROW else torch.float64,
        "reshape": lambda: merged_shape(x, dim),
    }[op]()
    partners = [i for i, y in enumerate(values) if y.dim() == x.dim()]
    return op, (at, rng.choice(partners)) if op == "cat" else (at,), attribute


def merged_shape(x, dim):
    shape = list(x.shape)
    if dim + 1 < x.dim():
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        return tuple(shape)
    return (-1,)


def draw_step(rng, values):
    """A step of the last values; it may not be legal."""
    at = rng.randrange(max(0, len(values) - 5), len(values))
    x, kind = values[at], rng.random()
    dim = rng.randrange(max(1, x.dim()))
    dims = tuple(sorted(rng.sample(range(x.dim()), rng.randint(1, x.dim())))) if x.dim() else ()
    if kind < 0.08:
        return rng.choice(WRITERS), (at,), (dim, *(draw_rows(rng, x.shape[dim]) for _ in "ab"))
    if kind < 0.3:
        return rng.choice(UNARY), (at,), None
    if kind < 0.55:
        partners = [i for i, y in enumerate(values) if is_broadcastable(x, y)] or [at]
        op = rng.choice(BINARY + ["where"] * (x.dtype not in NARROW))
        return op, (at, rng.choice(partners)), None
    if kind < 0.72:
        return rng.choice(REDUCE), (at,), dims
    if kind < 0.77:
        return "softmax", (at,), dim
    if kind < 0.8 and x.dtype not in NARROW:
        return rng.choice(("argmax", "roll_by_max")), (at,), dims
    return draw_move(rng, rng.choice(MOVES), at, values)


def is_broadcastable(x, y):
    try:
        return torch.broadcast_shapes(x.shape, y.shape).numel() <= MOST_ELEMENTS
    except RuntimeError:
        return False


def make_input(rng, shape, dtype):
    """Dense, or a transposed or strided part of something larger."""
    x = torch.randn(shape).to(dtype)
    kind = rng.random()
    if kind < 0.15 and len(shape) > 1:
        return torch.randn(shape[::-1]).to(dtype).permute(*range(len(shape))[::-1])
    if kind < 0.25:
        wide = torch.randn(*shape[:-1], 2 * shape[-1] + 1).to(dtype)
        return wide[..., 1::2]
    return x


def make_program(seed, small=False):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    extents = SMALL if small or rng.random() < 0.15 else EXTENTS
    shape = tuple(rng.choice(extents) for _ in range(rng.randint(1, 3)))
    dtype = rng.choice(DTYPES)
    inputs = [make_input(rng, shape, dtype) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        inputs.append(make_input(rng, shape[-1:], dtype))
    values, steps = list(inputs), []
    while len(steps) < 3 or (len(steps) < 14 and rng.random() < 0.88):
        try:
            step = draw_step(rng, values)
            value = apply(step, values)
        except (RuntimeError, IndexError, ValueError):
            continue
        if value.numel() <= MOST_ELEMENTS and value.dim() <= 4:
            values.append(value)
            steps.append(step)
    count = rng.randint(1, min(3, len(steps)))
    outputs = sorted({len(values) - 1, *rng.sample(range(len(inputs), len(values)), count)})
    return Program(seed, inputs, steps, outputs)
