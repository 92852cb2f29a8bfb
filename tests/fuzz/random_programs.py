"""Random programs against eager: forward and backward, static and dynamic, 16 to 64 bits.

    python tests/fuzz/random_programs.py [--seeds 200] [--first 0] [--simulate] [--device cuda]

Programs of one batch are one graph, which is where they go wrong together; a batch that differs is
checked again program by program.  Every value and every gradient is compared with an fp64 run of
the same program by rule R10's spirit: the error may not exceed four times eager's own plus a bound
that grows with the size of the values.  Results share memory exactly where eager's do.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from check_seeds import check_seeds, parse_arguments
from random_steps import make_program
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.poisoned import check_device  # noqa: E402

BATCH = 8


def layout_of(tensor):
    """Strides of the dimensions in which there is more than one step."""
    sizes = tensor.shape if tensor.numel() else ()
    return [s for s, n in zip(tensor.stride(), sizes) if n > 1]


def storages_of(tensors):
    """By tensor: the first of them that has the same memory."""
    storages = [x.untyped_storage() for x in tensors]
    pointers = [storage.data_ptr() or storage._cdata for storage in storages]
    return [pointers.index(p) for p in pointers]


def differ_by(result, eager, exact):
    """Nothing, or how a result differs from eager's; `exact` is that of an fp64 run."""
    if (result.dtype, result.shape) != (eager.dtype, eager.shape):
        return f"{result.dtype} {result.shape}, eager {eager.dtype} {eager.shape}"
    if not torch.equal(result.isfinite(), eager.isfinite()):
        return "other elements are not finite"
    mask = eager.isfinite() & exact.isfinite()
    if not mask.any():
        return None
    error = (result.double() - exact)[mask].abs().max()
    bound = (eager.double() - exact)[mask].abs().max()
    scale = exact[mask].abs().max()
    unit = torch.finfo(eager.dtype).eps
    if error > 4 * bound + 250 * min(unit, 2**-23) * scale + 4 * unit * scale + 16 * unit:
        return f"error {error:.3g}, eager's {bound:.3g}, scale {scale:.3g}"
    return None


def run(function, inputs, backward):
    """Results, and the gradients of the inputs where asked for."""
    if not backward:
        with torch.no_grad():
            return list(function(*inputs))
    leaves = [x.detach().requires_grad_() for x in inputs]
    results = function(*leaves)
    total = sum((y.float() if y.dtype != torch.float64 else y).sum() for y in results)
    if not total.requires_grad:
        return [y.detach() for y in results]
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [y.detach() for y in results] + [g for g in gradients if g is not None]


def mode_of(seed):
    """(backward, dynamic) of the batch that a seed belongs to."""
    batch = seed // BATCH
    return batch % 3 == 0, batch % 4 == 1


def check_together(programs, options):
    """Nothing, or what differs, of programs that are compiled as one."""
    backward, dynamic = mode_of(programs[0].seed)
    ends = [0]
    for program in programs:
        ends.append(ends[-1] + len(program.inputs))

    functions = [program.load() for program in programs]

    def function(*inputs):
        parts = (p(*inputs[a:b]) for p, a, b in zip(functions, ends, ends[1:]))
        return tuple(result for part in parts for result in part)

    inputs = [x for program in programs for x in program.inputs]
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="stitch", dynamic=dynamic, options=options)
    found, eager = (run(f, inputs, backward) for f in (compiled, function))
    exact = run(function, [x.double() for x in inputs], backward)
    for i, row in enumerate(zip(found, eager, exact, strict=True)):
        difference = differ_by(*row)
        if difference:
            return f"result {i}: {difference}"
    results = sum(program.results for program in programs)
    return layouts_differ(function, inputs, found[:results], eager[:results], dynamic)


def layouts_differ(function, inputs, found, eager, dynamic):
    """Nothing, or which strides and storages are neither eager's nor those that torch traces: its
    decompositions, its plans and its fake tensors have others for every backend.  Gradients may
    have any."""

    def traced():
        torch._dynamo.reset()
        how = {"backend": "aot_eager", "dynamic": dynamic}
        return run(torch.compile(function, **how), inputs, False)

    def planned():
        torch._dynamo.reset()
        values = []

        def keep(gm, _):
            values.extend(x.meta["val"] for x in gm.graph.output_node().args[0])
            return gm.forward

        how = {"backend": aot_autograd(fw_compiler=keep), "dynamic": dynamic}
        run(torch.compile(function, **how), inputs, False)
        return values

    def faked():
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            return run(function, [mode.from_tensor(x) for x in inputs], False)

    def layouts(results):
        return [layout_of(x) for x in results]

    def storages(results):
        return storages_of(inputs + results)

    for what, others in ((layouts, (traced, planned, faked)), (storages, (traced,))):
        if what(found) != what(eager) and all(what(found) != what(other()) for other in others):
            rows = enumerate(zip(what(found), what(eager), strict=True))
            return f"layouts (ours, eager's): {[(i, *p) for i, p in rows if p[0] != p[1]]}"
    return None


def options_of(simulate):
    return {"strict": True} | ({"target": "h200", "simulate": True} if simulate else {})


def attempt(programs, simulate):
    """What differs; a crash is a finding too."""
    try:
        found = check_together(programs, options_of(simulate))
    except Exception as error:
        found = f"{type(error).__name__}: {str(error)[:400]}"
    check_device(programs[0].device, found or "after it was checked")
    return found


def check(seed, simulate=False):
    """Nothing, or what differs for one program alone."""
    return attempt([make_program(seed, small=simulate)], simulate)


def check_batch(seeds, simulate=False, device="cpu"):
    """Failures by seed; of a batch that fails as a whole alone, by its first seed."""
    programs = [make_program(seed, simulate, device) for seed in seeds]
    together = attempt(programs, simulate)
    if not together:
        return {}
    alone = {p.seed: attempt([p], simulate) for p in programs}
    failed = {seed: difference for seed, difference in alone.items() if difference}
    return failed or {seeds[0]: f"seeds {seeds[0]} to {seeds[-1]} together: {together}"}


def main():
    args = parse_arguments(__doc__, "--simulate")
    what = "random programs on ptxsim" if args.simulate else "random programs"

    def describe(seed):
        return f"{mode_of(seed)} {make_program(seed, small=args.simulate)}"

    check = partial(check_batch, simulate=args.simulate, device=args.device)
    return check_seeds(check, describe, args, what, BATCH)


if __name__ == "__main__":
    sys.exit(main())
