"""What random programs are made of: steps, drawn by a seed, that are legal for the values so far.

A step is the text of a statement: `v5 = v3.roll(-1, 0)`; `on` is the device.  Values are small, so
that its legality is tried out; extents of 0 and 1 are among them.  Steps whose result or gradient
jumps where one value crosses another are drawn for f32 and f64 only: in 16 bits rounding decides
them.
"""

import random
from typing import NamedTuple

import torch

# {a}, {b}: values; {d}: a dimension; {ds}: several; {r}, {row_ids}: positions along d.
UNARY = """
    -{a} | {a}.abs() | {a}.exp() | {a}.tanh() | {a}.sigmoid() | {a}.relu() | {a}.sin()
    {a}.square() | {a}.erf() | ({a}.abs() + 0.25).sqrt() | {a}.abs().log1p() | F.silu({a})
"""
BINARY = """
    {a} + {b} | {a} - {b} | {a} * {b}
    {a} / ({b}.abs() + 0.5) | ({a} * {a} + {b} * {b} + 0.25).sqrt()
"""
CHOICES = """
    {a}.maximum({b}) | {a}.minimum({b}) | torch.where({a} > {b}, {a}, {b} * 0.5)
"""
REDUCE = """
    {a}.sum({ds}, keepdim=True) | {a}.mean({ds}, keepdim=True) | {a}.amax({ds}, keepdim=True)
    {a}.amin({ds}, keepdim=True) | {a}.var({ds}, keepdim=True, correction=0)
    {a}.std({ds}, keepdim=True, correction=0)
    ({a}.clamp(-1, 1) * 0.1 + 1).prod({ds}[0], keepdim=True)
"""
JUMPS = """
    {a}.argmax({ds}[0], keepdim=True).to({a}.dtype)
    torch.where({a} == {a}.amax({ds}, keepdim=True), {a} * 0.5, {a})
"""
# Rows of a value, halved and shuffled, combined into others of it.  {first_row}: one of row_ids.
WRITERS = """
    {a}.index_add({d}, {row_ids}, {rows})
    {a}.scatter_reduce({d}, {row_ids}.view({along}).expand_as({rows}), {rows}, "amax")
    {a}.slice_scatter({rows}, {d}, {a}.shape[{d}] - len({r}))
    {a}.clone(); {v}.movedim({d}, 0)[{first_row}] = ({rows}).movedim({d}, 0)[:1]
    {a}.clone(); {v}.select({d}, {r}[0]).mul_(2); {v}.index_copy_({d}, {first_row}, {row})
"""
MOVES = """
    {a}.permute({order}) | {a}.narrow({d}, {start}, {count}) | torch.cat(({a}, {like}), {d})
    {a}.flip({d}) | F.pad({a}, {pad}, value=0.5) | {a}.roll({by}, {d})
    {a}.unsqueeze({d}).expand([*{a}.shape[:{d}], 3, *{a}.shape[{d}:]])
    {a}.index_select({d}, {row_ids}) | {a}.select({d}, {start})
    {a}.select({d}, {start} - {a}.shape[{d}]) | torch.stack(({a}, {a} * 0.5), {d})
    {a}.movedim({d}, 0)[::{step}].movedim(0, {d}) | {a}.reshape({merged})
    {a}.to({other}).to({a}.dtype)
"""
EXTENTS = (1, 2, 3, 5, 7, 8, 12, 16, 17, 33, 64)
SMALL = (0, 1, 2, 3, 5, 8)
MOST_ELEMENTS = 20_000
DTYPES = (torch.float32,) * 5 + (torch.bfloat16, torch.float16, torch.float64)
NARROW = (torch.bfloat16, torch.float16)


def list_forms(text):
    """The forms of a table, apart by lines and bars."""
    forms = (form.strip() for line in text.splitlines() for form in line.split(" | "))
    return [form for form in forms if form]


UNARY, BINARY, CHOICES, REDUCE, JUMPS, WRITERS, MOVES = (
    list_forms(text) for text in (UNARY, BINARY, CHOICES, REDUCE, JUMPS, WRITERS, MOVES)
)


class Program(NamedTuple):
    seed: int
    inputs: list
    text: str
    results: int
    device: str

    def load(self):
        """The function that the text defines."""
        env = {"torch": torch, "F": torch.nn.functional, "on": self.device}
        exec(self.text, env)  # noqa: S102
        return env["program"]

    def __str__(self):
        inputs = [f"{x.dtype} {tuple(x.shape)} {x.stride()}" for x in self.inputs]
        return f"# {inputs}\n{self.text}".replace("\n", "\n  ")


def draw_rows(rng, size):
    return [rng.randrange(size) for _ in range(rng.randint(1, size))] if size else []


def merged_shape(x, dim):
    """Two dimensions made one."""
    shape = list(x.shape)
    if dim + 1 < x.dim():
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        return tuple(shape)
    return (-1,)


def choose_form(rng, dtype):
    kind = rng.random()
    if kind < 0.08:
        return rng.choice(WRITERS)
    if kind < 0.3:
        return rng.choice(UNARY)
    if kind < 0.55:
        return rng.choice(BINARY + CHOICES * (dtype not in NARROW))
    if kind < 0.72:
        return rng.choice(REDUCE)
    if kind < 0.77:
        return "{a}.softmax({d})"
    if kind < 0.8 and dtype not in NARROW:
        return rng.choice(JUMPS)
    return rng.choice(MOVES)


def draw_step(rng, values):
    """A statement that makes the next value from one of the last; it may not be legal."""
    at = rng.randrange(max(0, len(values) - 5), len(values))
    a, v, x = f"v{at}", f"v{len(values)}", values[at]
    rank = x.dim()
    d = rng.randrange(max(1, rank))
    size = x.shape[d] if rank else 1
    start = rng.randrange(max(1, size))
    r, s = (draw_rows(rng, size) for _ in "rs")
    of_r, of_s, first = (f"torch.tensor({ids}, device=on)" for ids in (r, s[: len(r)], r[:1]))
    rows = f"{a}.index_select({d}, {of_s}) * 0.5"
    partners = [i for i, y in enumerate(values) if is_broadcastable(x, y)] or [at]
    alike = [i for i, y in enumerate(values) if y.dim() == rank]
    form = choose_form(rng, x.dtype).format(
        a=a, v=v, d=d, r=r, start=start, rows=rows, row_ids=of_r, first_row=first,
        b=f"v{rng.choice(partners)}",
        like=f"v{rng.choice(alike)}",
        ds=tuple(sorted(rng.sample(range(rank), rng.randint(1, rank)))) if rank else (),
        row=f"({rows}).narrow({d}, 0, 1)",
        along=[-1 if axis == d else 1 for axis in range(rank)],
        order=tuple(rng.sample(range(rank), rank)),
        count=rng.randint(start, size) - start,
        pad=(rng.randint(0, 2), rng.randint(0, 3)),
        by=rng.randint(-2, 2),
        step=rng.randint(2, 3),
        merged=merged_shape(x, d),
        other=torch.float32 if x.dtype in NARROW else torch.float64,
    )  # fmt: skip
    return f"{v} = {form}"


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


def draw_inputs(rng, small):
    extents = SMALL if small or rng.random() < 0.15 else EXTENTS
    shape = tuple(rng.choice(extents) for _ in range(rng.randint(1, 3)))
    dtype = rng.choice(DTYPES)
    inputs = [make_input(rng, shape, dtype) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        inputs.append(make_input(rng, shape[-1:], dtype))
    return inputs


def onto(x, device):
    """The same strides there."""
    if device == "cpu" or not x.numel():
        return x.to(device)
    whole = x if x._base is None else x._base
    return whole.to(device).as_strided(x.shape, x.stride(), x.storage_offset())


def is_far_from_overflow(x):
    """In 16 bits an infinity, of a square too, would depend on what is rounded."""
    return x.dtype not in NARROW or not x.isfinite().any() or x[x.isfinite()].abs().amax() < 200


def make_program(seed, small=False, device="cpu"):
    """`small`: for ptxsim.  It is drawn on the CPU, where what is not legal does no harm."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    inputs = draw_inputs(rng, small)
    values, steps = list(inputs), []
    while len(steps) < 3 or (len(steps) < 14 and rng.random() < 0.88):
        env = {f"v{i}": x for i, x in enumerate(values)}
        env |= {"torch": torch, "F": torch.nn.functional, "on": "cpu"}
        try:
            step = draw_step(rng, values)
            exec(step, env)  # noqa: S102
        except (RuntimeError, IndexError, ValueError):
            continue
        value = env[f"v{len(values)}"]
        if value.numel() <= MOST_ELEMENTS and value.dim() <= 4 and is_far_from_overflow(value):
            values.append(value)
            steps.append(step)
    count = rng.randint(1, min(3, len(steps)))
    outputs = sorted({len(values) - 1, *rng.sample(range(len(inputs), len(values)), count)})
    taken = ", ".join(f"v{i}" for i in range(len(inputs)))
    given = ", ".join(f"v{i}" for i in outputs)
    lines = [f"def program({taken}):", *steps, f"return ({given},)"]
    inputs = [onto(x, device) for x in inputs]
    return Program(seed, inputs, "\n    ".join(lines) + "\n", len(outputs), device)
