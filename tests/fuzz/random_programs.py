"""Random programs of pointwise ops, reductions, views, readers and writers, against eager.

    python tests/fuzz/random_programs.py [--seeds 200] [--first 0]

Every value is compared with an fp64 run of the same program by rule R10's spirit: the error of the
stitched result may not exceed four times eager's own plus a bound that grows with the reduced size.
A failing seed prints its program.
"""

import argparse
import random
import sys

import torch

import torch_stitch

UNARY = ("neg", "abs", "exp", "tanh", "sigmoid", "relu", "sin", "square", "erf")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
REDUCE = ("sum", "mean", "amax", "amin", "var")
WRITERS = ("index_add", "scatter_max", "slice_scatter", "write")
EXTENTS = (1, 2, 3, 5, 7, 8, 12, 16, 17, 33, 64)


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
    y.select(dim, rows[0]).mul_(2)
    y.index_copy_(dim, index[:1], source.narrow(dim, 0, 1))
    return y


def apply(step, values):
    """The value of one step: (op, operands, attributes)."""
    op, operands, attribute = step
    x = values[operands[0]]
    if op in UNARY:
        return getattr(torch, op)(x) if op != "erf" else torch.erf(x)
    if op in BINARY:
        return getattr(torch, op)(x, values[operands[1]])
    if op in ("amax", "amin"):
        return getattr(x, op)(attribute, keepdim=True)
    if op == "var":
        return x.var(attribute, keepdim=True, correction=0)
    if op in REDUCE:
        return getattr(x, op)(attribute, keepdim=True)
    if op == "permute":
        return x.permute(attribute)
    if op == "slice":
        dim, start, stop = attribute
        return x.narrow(dim, start, stop - start)
    if op == "cat":
        return torch.cat((x, values[operands[1]]), attribute)
    if op == "flip":
        return x.flip(attribute)
    if op in WRITERS:
        return write(op, x, attribute)
    if op == "softmax":
        return x.softmax(attribute)
    return x.reshape(attribute)


def random_step(rng, values):
    """A step that is legal for the values so far; they are small, so legality is tried out."""
    at = rng.randrange(max(0, len(values) - 5), len(values))
    x = values[at]
    dim = rng.randrange(x.dim())
    if rng.random() < 0.1:
        size = x.shape[dim]
        count = rng.randint(1, size)
        rows, taken = ([rng.randrange(size) for _ in range(count)] for _ in range(2))
        return (rng.choice(WRITERS), (at,), (dim, rows, taken))
    kind = rng.random()
    if kind < 0.3:
        return (rng.choice(UNARY), (at,), None)
    if kind < 0.55:
        partners = [i for i, y in enumerate(values) if is_broadcastable(x, y)] or [at]
        return (rng.choice(BINARY), (at, rng.choice(partners)), None)
    if kind < 0.75:
        dims = tuple(sorted(rng.sample(range(x.dim()), rng.randint(1, x.dim()))))
        return (rng.choice(REDUCE), (at,), dims)
    if kind < 0.8:
        return ("softmax", (at,), dim)
    if kind < 0.85:
        return ("permute", (at,), tuple(rng.sample(range(x.dim()), x.dim())))
    if kind < 0.9:
        start = rng.randrange(x.shape[dim])
        return ("slice", (at,), (dim, start, rng.randint(start + 1, x.shape[dim])))
    if kind < 0.94 and x.numel() <= 20000:
        return ("cat", (at, at), dim)
    if kind < 0.97:
        return ("flip", (at,), (dim,))
    shape = list(x.shape)
    if x.dim() > 1 and dim + 1 < x.dim():
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
    else:
        shape = [-1]
    return ("reshape", (at,), tuple(shape))


def is_broadcastable(x, y):
    try:
        return torch.broadcast_shapes(x.shape, y.shape).numel() <= 20000
    except RuntimeError:
        return False


def make_program(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    shape = tuple(rng.choice(EXTENTS) for _ in range(rng.randint(1, 3)))
    inputs = [torch.randn(shape) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        inputs.append(torch.randn(shape[-1:]))
    values, steps = list(inputs), []
    for _ in range(rng.randint(3, 14)):
        step = random_step(rng, values)
        values.append(apply(step, values))
        steps.append(step)
    count = rng.randint(1, min(3, len(steps)))
    outputs = sorted({len(values) - 1, *rng.sample(range(len(inputs), len(values)), count)})

    def program(*args):
        made = list(args)
        for step in steps:
            made.append(apply(step, made))
        return tuple(made[i] for i in outputs)

    return program, inputs, steps, outputs


def layout_of(tensor):
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def check(seed):
    """Nothing, or what differs."""
    program, inputs, steps, outputs = make_program(seed)
    expected = program(*inputs)
    exact = program(*(x.double() for x in inputs))
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="stitch", dynamic=False, options={"strict": True})
    found = compiled(*inputs)
    for i, (result, eager, reference) in enumerate(zip(found, expected, exact, strict=True)):
        # The stride of a dimension of extent 1 addresses nothing.
        layouts = [layout_of(t) for t in (result, eager)]
        if result.shape != eager.shape or layouts[0] != layouts[1]:
            return f"output {i}: {result.shape} {result.stride()}, eager {eager.stride()}"
        if not torch.equal(result.isfinite(), eager.isfinite()):
            return f"output {i}: other elements are not finite"
        mask = eager.isfinite() & reference.isfinite()
        error = (result.double() - reference)[mask].abs()
        bound = (eager.double() - reference)[mask].abs().max() if mask.any() else torch.tensor(0.0)
        scale = reference[mask].abs().max() if mask.any() else torch.tensor(0.0)
        if mask.any() and error.max() > 4 * bound + 3e-5 * scale + 1e-6:
            return f"output {i}: error {error.max():.3g}, eager's {bound:.3g}, scale {scale:.3g}"
    return None


def describe(seed):
    _, inputs, steps, outputs = make_program(seed)
    lines = [f"inputs {[tuple(x.shape) for x in inputs]} outputs {outputs}"]
    lines += [f"{len(inputs) + i} {step}" for i, step in enumerate(steps)]
    return "\n".join(lines)


def main(check, describe, about):
    """Checks each seed; one that crashes is a finding, and the run goes on."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    failed = excused = 0
    for seed in range(args.first, args.first + args.seeds):
        try:
            difference = check(seed)
        except Exception as error:
            difference = f"{type(error).__name__}: {str(error)[:400]}"
        if difference and difference.startswith("torch: "):
            excused += 1
        elif difference:
            failed += 1
            print(f"seed {seed}: {difference}")
            print("  " + describe(seed).replace("\n", "\n  "), flush=True)
    fallbacks = torch_stitch.counters()["fallback_ops"]
    passed = args.seeds - failed - excused
    apart = f", {excused} that torch's tracing fails" if excused else ""
    print(f"{passed} passed, {failed} failed{apart}, {fallbacks} fallback ops")
    return 1 if failed or fallbacks else 0


if __name__ == "__main__":
    sys.exit(main(check, describe, __doc__))
