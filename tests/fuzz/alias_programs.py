"""Random programs of views, writes in place and arguments that share memory, against eager.

    python tests/fuzz/alias_programs.py [--seeds 200] [--first 0] [--state FILE] [--device cuda]

A program is text.  Its numbers are whole, so that every result is exact; values, strides, and which
arguments and results share memory must be eager's.  Then each of them is written in turn, and all
are compared again; gradients are compared where there are any.  What torch's own tracing, its
decompositions or its partitioner get wrong (TRACED) is counted apart.
"""

import functools
import random
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import torch
from check_seeds import check_seeds, parse_arguments
from random_steps import list_forms

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.poisoned import ENDED, PoisonedError, check_device, is_poison  # noqa: E402

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7)
# {a}, {b}: values; {d}, {e}: dimensions of a; {i}: a place in dimension d; {k}: a number; on: the
# device.
VIEWS = """
    {a}.transpose({d}, {e}) | {a}.movedim({d}, {e}) | {a}.select({d}, {i}) | {a}.unsqueeze({d})
    {a}.narrow({d}, {i}, {a}.shape[{d}] - {i}) | {a}[{i}:] | {a}[::2] | {a}[..., {i}:]
    {a}.view(-1) | {a}.squeeze() | {a}.squeeze({d}) | {a}.expand(2, *{a}.shape) | {a}.diagonal()
    {a}[..., -1] | {a}.view({a}.shape) | {a}.flatten() | {a}.unbind({d})[{i}]
    {a}.split(2, {d})[-1] | {a}[:] | {a}.chunk(2, {d})[0] | {a}.unfold({d}, 2, 1) | {a}.detach()
    {a}.mT | {a}.T | {a}[None, ..., None] | {a}.view({a}.shape[0], -1) | {a}.reshape(-1)
    {a}.expand_as({a}) | {a}.swapaxes(0, -1) | {a}.real | {a}.as_strided({a}.shape, {a}.stride())
    {a}.as_strided((2,), (1,)) | {a}.as_strided((2, 2), (1, 2), 1) | {a}.unflatten({d}, (1, -1))
    {a}.t() | {a}.ravel() | {a}.view_as({a})
    {a}.view(torch.int32) | {a}.view(torch.int64) | {a}.view(torch.float32)
"""
IDENTITIES = """
    {a}.pow(1) | {a} * 1 | {a} + 0 | {a}.clone() | {a}.to({a}.dtype) | {a}.contiguous()
    {a} ** 1.0 | torch.cat([{a}]) | {a}.repeat(*[1] * {a}.dim()) | {a}.clamp(min=-1000000)
    {a}.positive() | +{a} | {a}.flip({d}).flip({d}) | {a}.roll(0)
    torch.where({a} == {a}, {a}, 0) | {a} - 0 | {a} / 1 | {a}.to(torch.float64).to({a}.dtype)
    {a}.masked_fill({a} != {a}, 0) | F.pad({a}, (0, 0)) | {a}.tril({a}.numel()) | {a}.abs().abs()
    {a}.relu().relu() | -(-{a}) | {a}.nan_to_num()
    {a}.clone(memory_format=torch.contiguous_format) | torch.stack([{a}])[0]
    {a}.contiguous(memory_format=torch.channels_last) | {a}.mul(1)
    {a}.index_select(0, torch.arange({a}.shape[0], device=on)) | {a}.sum(())
    {a}.unsqueeze(0).sum(0)
    {a}.unsqueeze(0).amax(0) | {a}.maximum({a}) | torch.atleast_2d({a})
    {a}.broadcast_to({a}.shape) | {a}.resolve_conj() | {a}.round() | torch.cat([{a}, {a}[:0]])
    {a}.type_as({a}) | {a}.new_tensor(1)
    {a}.index_put((torch.arange({a}.shape[0], device=on),), {a})
    {a}.float() | {a}.double() | torch.clone({a}.t())
"""
VALUES = """
    {a} + 1 | {a} * 2 | -{a} | {a}.abs() | {a}.relu() | {a} + {b} | {a} - {b} | {a}.maximum({b})
    {a}.sum({d}) | {a}.sum() | {a}.amax({d}) | {a}.max({d}).values | {a}.cumsum({d})
    {a}.flip({d}) | {a}.sort({d}).values | torch.cat([{a}, {a}], {d}) | {a}.t() + 1
    {a}.amin({d}, keepdim=True) | torch.where({a} > 0, {a}, {b})
    {a}.index_select({d}, torch.tensor([{i}], device=on)) | {a} @ {a}.mT
    {a}.as_strided_scatter({a}.select({d}, {i}), {a}.select({d}, {i}).shape, (1,) * ({a}.dim() - 1))
    torch.as_strided({a} * 2, (2,), (1,)) | (-{a}).as_strided((2, 2), (1, 2), 1)
    {a}.gt(0).to({a}.dtype) | {a}.select_scatter({a}.select({d}, 0) + 1, {d}, {i})
    {a}.slice_scatter({a}[:1] * 2, 0, 0, 1)
    torch.as_strided_scatter({a} + 1, {b}.reshape(-1)[:2], (2,), (1,))
    {a}.repeat_interleave(2, {d}) | ({a} + 1).T | ({a} * 2)[1:] | ({a} + 1).expand(2, *{a}.shape)
    torch.zeros_like({a}) | {a}.diagonal_scatter({a}.diagonal() + 1)
    torch.empty_like({a}).fill_({k}) | torch.full_like({a}, {k})
    {a}.gather({d}, torch.zeros_like({a}).long())
"""
WRITES = """
    {a}.add_({k}) | {a}.mul_(2) | {a}.neg_() | {a}.zero_() | {a}.fill_({k}) | {a}.copy_({b})
    {a}.relu_() | {a}.add_({b}) | {a}.sub_({a}) | {a}.copy_({a}.flip({d})) | {a}.clamp_(-3, 3)
    {a}.abs_() | {a}[{i}:] = {k} | {a}[{i}] = {b} | {a}[{i}].add_({k}) | {a}[..., {i}] = {k}
    {a}[{a} > 1] = {k} | {a}[::2] += 1 | {a}[{i}] += {a}[0] | {a}.masked_fill_({a} > 0, {k})
    {a}.index_fill_({d}, torch.tensor([{i}], device=on), {k}) | {a}[:] = {b}
    {a}.index_add_({d}, torch.tensor([{i}], device=on), {a}.narrow({d}, 0, 1))
    {a}[torch.tensor([0, {i}], device=on)] = {k}
    {a}[torch.tensor([{i}], device=on), ..., torch.tensor([0], device=on)] = {k}
    {a}.index_copy_(0, torch.tensor([{i}], device=on), {b}[:1])
    {a}.scatter_({d}, torch.zeros_like({a}, dtype=torch.int64), {k})
    torch.add({a}, {b}, out={a}) | torch.mul({b}, 2, out={a}) | torch.neg({a}, out={b})
    {a}.diagonal().fill_({k}) | {a}.t().add_({k}) | {a}.view(-1).add_({k})
    {a}.narrow({d}, {i}, 1).copy_({b}.narrow({d}, {i}, 1))
    {a}.masked_scatter_({a} > 0, {b}.clone()) | {a}.select({d}, {i}).mul_(2)
    {a}.as_strided((2,), (1,)).add_({k})
    {a}.index_put_((torch.tensor([{i}, 0], device=on),), {b}, accumulate=True)
    {a}[1:].copy_({a}[:-1].clone()) | {a}.expand(2, *{a}.shape)[0].add_({k})
    torch._foreach_add_([{a}], {k}) | {a}.cumsum_({d}) | {a}.tril_()
    {a}.where({a} > 0, {b}).add_({k}) | {a}.data.add_({k})
    {a}[{i}][..., 0] = {k} | {a}[0, {i}:] = {b}[0, {i}:] | {a}[:1][..., {i}:] += {k}
    {a}.narrow({d}, 0, 1).copy_({b}.narrow({d}, {i}, 1)) | {a}[{i}, ..., :1] *= 2
    t = {b}[{i}:].clone(); t[:1] = {k}; {a}[{i}:] = t
    t = {a}[{i}:] * 1; t[..., 0] = {k}; {a}[:1] = t[:1]
    t = {b}.narrow({d}, {i}, 1) + 1; {a}.narrow({d}, 0, 1).copy_(t)
    {a}[0], {a}[{i}] = {a}[{i}].clone(), {a}[0].clone() | {a}[0] += 1; {a}[-1] *= 2
    {a}.copy_({a}.slice_scatter({b}[{i}:] + 1, 0, {i})) | {a}[:, {i}] = {b}[{i}, 0]
    {a}.copy_({b}.select_scatter({a}.select({d}, {i}), {d}, 0))
"""
# Of what the program has made: Dynamo takes none of a graph's own inputs.
TURNS = "{a}.t_() | {a}.transpose_({d}, {e}) | {a}.unsqueeze_({d}) | {a}.squeeze_()"
TURNS += " | {a}.swapaxes_(0, -1)"
ARGUMENTS = "{a} | {a}.detach() | {a}[1:] | {a}.t() | {a}[:1] | {a}.view(-1) | {a}[..., 1:]"
ARGUMENTS += " | {a}.select(0, 0) | {a}.expand(2, *{a}.shape) | {a}[::2]"
ARGUMENTS += " | {a}.as_strided((2,), (1,), 1)"
MOST = 2**20  # what values may grow to: far from where they are rounded


TRACED = ("aot_eager", "aot_eager_decomp_partition")
KINDS = [list_forms(text) for text in (VIEWS, IDENTITIES, VALUES, WRITES, TURNS, ARGUMENTS)]


def fill(rng, form, names, env):
    """A form with what it leaves open, drawn at random."""
    a = rng.choice(names[-5:] if rng.random() < 0.6 else names)
    alike = [b for b in names if env[b].shape == env[a].shape and env[b].dtype == env[a].dtype]
    rank = env[a].dim()
    d, e = (rng.randrange(-rank, rank) if rank else 0 for _ in range(2))
    i = rng.randrange(max(1, min(3, env[a].shape[d] if rank else 1)))
    return form.format(a=a, b=rng.choice(alike), d=d, e=e, i=i, k=rng.randint(-2, 3))


def whole(seed, dtype, *sizes, order=None, grad="", device="cpu"):
    """Small whole numbers, in memory in the `order` of dimensions; `grad`: a leaf, or of one."""
    numbers = torch.Generator().manual_seed(seed)
    order = order or range(len(sizes))
    x = torch.randint(-4, 5, [sizes[d] for d in order], generator=numbers).to(device, dtype)
    x = x.permute([*map(list(order).index, range(len(sizes)))])
    if not grad or not dtype.is_floating_point:
        return x
    leaf = x.requires_grad_()
    return leaf if grad == "leaf" else leaf.clone()


def names_on(device):
    """What the text of a program knows."""
    made = functools.partial(whole, device=device)
    return {"torch": torch, "F": torch.nn.functional, "whole": made, "on": device}


def is_exact(x):
    """Whether sums of it are the same in any order: integers wrap."""
    return not x.is_floating_point() or bool((x.eq(x.round()) & x.abs().le(MOST)).all())


class Program:
    """`lines` of the body, what it takes, what it returns; `run` makes all of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.trains, self.is_dynamic = self.rng.random() < 0.4, self.rng.random() < 0.35
        while True:
            self.taken, self.lines = [], []
            env = names_on("cpu")
            if self.take(env) and self.fill(env):
                break
        names = [name for name in env if name[0] in "xv"]
        picked = self.rng.choices(names, k=self.rng.randint(1, 4))
        picked = [f"{x}.clone()" if self.rng.random() < 0.3 else x for x in picked]
        self.lines.append(f"return ({', '.join(picked)},)")
        arguments = [line.split(" = ")[0] for line in self.taken]
        body = "\n    ".join(self.lines)
        self.text = f"def program({', '.join(arguments)}):\n    {body}\n"
        made = "\n    ".join([*self.taken, f"return ({', '.join(arguments)},)"])
        self.setup = f"def make():\n    {made}\n"

    def take(self, env):
        """Arguments, of which some share memory."""
        rng = self.rng
        for at in range(rng.randint(1, 4)):
            names = [name for name in env if name[0] == "x"]
            if names and rng.random() < 0.5:
                made = rng.choice(KINDS[-1]).format(a=rng.choice(names))
            else:
                order = list(range(rng.choice((1, 2, 2, 3, 3, 4))))
                sizes = ", ".join(str(rng.choice(SIZES)) for _ in order)
                if rng.random() < 0.5:  # transposed, channels last, or any other way
                    order = rng.choice((order[::-1], order[:1] + order[2:] + order[1:2], order))
                    rng.shuffle(order) if rng.random() < 0.3 else None
                dtype = rng.choice(["torch.float32"] * 3 + ["torch.float64", "torch.int64"])
                grad = rng.choice(["leaf", "made", ""]) if self.trains else ""
                how = f"order={order}, grad={grad!r}"
                made = f"whole({rng.randrange(100)}, {dtype}, {sizes}, {how})"
            line = f"x{at} = {made}"
            if not self.attempt(line, env):
                return False
            self.taken.append(line)
        return True

    def fill(self, env):
        rng = self.rng
        for at in range(rng.randint(2, 9)):
            for _ in range(20):
                kind = rng.choices(range(5), (8, 4, 6, 10, 1))[0]
                names = [name for name in env if name[0] in ("v" if kind == 4 else "xv")]
                if not names:
                    continue
                step = fill(rng, rng.choice(KINDS[kind]), names, env)
                line = step if kind >= 3 else f"v{at} = {step}"
                if self.attempt(line, env):
                    self.lines.append(line)
                    break
        values = [v for name, v in env.items() if name[0] in "xv"]
        return self.lines and all(is_exact(v.detach()) for v in values)

    def attempt(self, line, env):
        """Whether a line is legal; what it wrote before it failed is made again."""
        trial = {k: v for k, v in env.items() if k[0] not in "xv"}
        try:
            for step in [*self.taken, *self.lines, line]:
                exec(step, trial)  # noqa: S102
        except Exception:
            return False
        made = [v for name, v in trial.items() if name[0] in "xv"]
        if any(not isinstance(v, torch.Tensor) or v.numel() > 3000 for v in made):
            return False
        env.clear()
        env.update(trial)
        return True

    def load(self, device="cpu"):
        env = names_on(device)
        exec(self.setup + self.text, env)  # noqa: S102
        return env["make"], env["program"]


def leaves_of(tensors):
    found = {}
    for tensor in tensors:
        stack = [tensor.grad_fn]
        if tensor.is_leaf and tensor.requires_grad:
            found[id(tensor)] = tensor
        while stack:
            node = stack.pop()
            if node is None:
                continue
            if hasattr(node, "variable"):
                found[id(node.variable)] = node.variable
            stack += [n for n, _ in node.next_functions]
    return list(found.values())


def storages(tensors):
    """Which of them share memory: by each the first one."""
    keys = [t.untyped_storage()._cdata for t in tensors]
    return [keys.index(key) for key in keys]


def layout(tensor):
    steps = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]
    offset = tensor.storage_offset() if tensor.numel() else 0
    return tensor.dtype, tuple(tensor.shape), steps if tensor.numel() else [], offset


def compare(found, expected, when):
    for at, (mine, eager) in enumerate(zip(found, expected, strict=True)):
        if layout(mine)[:3] != layout(eager)[:3]:
            return f"{when}: layout of {at} is {layout(mine)}, eager's {layout(eager)}"
        if not torch.equal(mine, eager):
            return f"{when}: {at} is {mine.tolist()}, eager's {eager.tolist()}"
    return None


def write_each(found, expected):
    """Writes every tensor in turn, in both runs."""
    for at, pair in enumerate(zip(found, expected, strict=True)):
        outcomes = []
        for tensor in pair:
            try:
                with torch.no_grad():
                    tensor.add_(at + 1)
                outcomes.append(None)
            except RuntimeError as error:
                outcomes.append(str(error)[:60])
        if outcomes[0] != outcomes[1]:
            return f"writing {at}: {outcomes[0]}, eager: {outcomes[1]}"
        difference = compare(found, expected, f"after writing {at}")
        if difference:
            return difference
    return None


def gradients(leaves, tensors):
    wanted = [t for t in tensors if t.requires_grad and not t.is_leaf]
    if not wanted or not leaves:
        return []
    factors = [torch.arange(t.numel(), device=t.device).reshape(t.shape) % 3 + 1 for t in wanted]
    loss = sum((t * f).sum() for t, f in zip(wanted, factors, strict=True))
    return [g for g in torch.autograd.grad(loss, leaves, allow_unused=True)]


def compare_gradients(mine, eager, when="gradients"):
    for at, (g, e) in enumerate(zip(mine, eager, strict=True)):
        # What is not reached is nothing or zeros.
        g, e = (torch.zeros(()) if x is None or not x.any() else x.cpu() for x in (g, e))
        if g.shape != e.shape or not torch.equal(g, e):
            return f"{when}: {at} is {g.tolist()}, eager's {e.tolist()}"
    return None


class Run:
    """One call: arguments and results, arguments first; leaves before the call wrote anything."""

    def __init__(self, make, fn):
        arguments = make()
        self.leaves = leaves_of(arguments)
        results = fn(*arguments)
        self.tensors = [*arguments, *results]


def differ(make, program, compiled):
    """Nothing, or what differs from eager."""
    eager, mine = Run(make, program), Run(make, compiled)
    difference = compare(mine.tensors, eager.tensors, "values")
    if difference:
        return difference
    groups = [storages(run.tensors) for run in (mine, eager)]
    if groups[0] != groups[1]:
        return f"storages are {groups[0]}, eager's {groups[1]}"
    wanted = [[t.requires_grad for t in run.tensors] for run in (mine, eager)]
    if wanted[0] != wanted[1]:
        return f"requires_grad is {wanted[0]}, eager's {wanted[1]}"
    difference = compare_gradients(
        *(gradients(run.leaves, run.tensors) for run in (mine, eager))
    )
    if difference:
        return difference
    eager, mine = Run(make, program), Run(make, compiled)
    difference = write_each(mine.tensors, eager.tensors)
    if difference:
        return difference
    try:
        expected = gradients(eager.leaves, eager.tensors)
    except RuntimeError:  # eager saved what was written
        return None
    if not expected:
        return None
    found = gradients(mine.leaves, mine.tensors)
    return compare_gradients(found, expected, "gradients after writing")


def attempt(make, program, backend, is_dynamic, device="cpu", **how):
    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend, dynamic=is_dynamic, fullgraph=True, **how)
    try:
        difference = differ(make, program, compiled)
    except Exception as error:
        text = str(error).split("\nException raised from")[0]  # addresses and paths follow
        difference = f"{type(error).__name__}: {text[:500]}"
    try:
        check_device(device, difference or "after it was checked")
    except PoisonedError as error:
        return f"{type(error).__name__}: {error}"
    return difference


def attempt_seed(seed, backend, device="cpu", **how):
    program = Program(seed)  # drawn on the CPU, where what is not legal does no harm
    make, function = program.load(device)
    if device != "cpu":
        try:
            Run(make, function)
        except (RuntimeError, NotImplementedError):  # nor is all of it there
            check_device(device, "eager")
            return None
    return attempt(make, function, backend, program.is_dynamic, device, **how)


def start_process():
    return ProcessPoolExecutor(1, get_context("spawn"))


checking_process = functools.cache(start_process)


def attempt_alone(seed, backend, device="cpu"):
    """By a process of its own: torch fails some programs if they are the first to be compiled."""
    with start_process() as process:
        try:
            return process.submit(attempt_seed, seed, backend, device).result()
        except BrokenProcessPool:
            return ENDED


def check(seed, device="cpu"):
    """Nothing, or what differs; "torch: .." where a backend of torch's own differs as well."""
    difference = attempt_seed(seed, "stitch", device, options={"strict": True})
    theirs = [attempt_alone(seed, backend, device) for backend in TRACED * bool(difference)]
    alike = difference and kind_of(difference) in map(kind_of, theirs)
    return f"torch: {difference}" if alike else difference


def check_all(seeds, device="cpu"):
    """By another process, which may end: torch replays a split of one of several arguments on the
    memory that they share, where the piece that it takes may not be there (seed 1061)."""
    found = {}
    for seed in seeds:
        try:
            found[seed] = checking_process().submit(check, seed, device).result()
        except BrokenProcessPool:
            checking_process.cache_clear()
            is_theirs = ENDED in (attempt_alone(seed, backend, device) for backend in TRACED)
            found[seed] = f"torch: {ENDED}" if is_theirs else ENDED
        if is_poison(found[seed]):
            checking_process().shutdown()
            checking_process.cache_clear()
    return {seed: difference for seed, difference in found.items() if difference}


def kind_of(difference):
    """Without numbers and the name of a backend."""
    return re.sub(r"\d+|aot_eager(_decomp_partition)?|stitch", "", difference or "")[:40]


def describe(seed):
    program = Program(seed)
    how = f"# dynamic={program.is_dynamic} trains={program.trains}\n"
    return (how + program.setup + program.text).replace("\n", "\n  ")


if __name__ == "__main__":
    what = "programs of aliases and mutation"
    args = parse_arguments(__doc__)
    checked = functools.partial(check_all, device=args.device)
    sys.exit(check_seeds(checked, describe, args, what))
