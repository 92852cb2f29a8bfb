"""Random programs run again and again: the same bits each time, by every process, in every order
of warps (R12).

`python -m tests.support.equal_bits calls RUNS FIRST ...` and `... orders ORDERS FIRST ...` print
JSON: a row for each batch of programs, which is named by its first.
"""

import hashlib
import json
import sys

import torch

import torch_stitch
from tests.fuzz.random_steps import make_program
from torch_stitch import _core

BATCH = 8  # programs of one graph


def programs_of(first, small=False):
    return [make_program(seed, small=small) for seed in range(first, first + BATCH)]


def join(programs):
    """One function of all their arguments: more kernels of one compile."""
    functions, ends = [program.load() for program in programs], [0]
    for program in programs:
        ends.append(ends[-1] + len(program.inputs))

    def function(*inputs):
        parts = (f(*inputs[a:b]) for f, a, b in zip(functions, ends, ends[1:]))
        return tuple(result for part in parts for result in part)

    return function, [x for program in programs for x in program.inputs]


def results_of(function, inputs, trains):
    """Results, and gradients."""
    leaves = [x.detach().requires_grad_(trains) for x in inputs]
    results = list(function(*leaves))
    roots = [y for y in results if y.requires_grad]
    if roots:
        ones = [torch.ones_like(y) for y in roots]
        results += torch.autograd.grad(roots, leaves, ones, allow_unused=True)
    return [y.detach().clone() for y in results if y is not None]


def bits_of(results):
    """A hash that tells -0 from 0, and one NaN from another."""
    dense = (y.clone(memory_format=torch.contiguous_format).flatten() for y in results)
    bits = (y.view(torch.uint8).numpy().tobytes() for y in dense)
    return hashlib.sha256(b"".join(bits)).hexdigest()


def call_again(first, runs):
    """Bits, and how often others came."""
    trains = first // BATCH % 2 == 1
    function, inputs = join(programs_of(first))
    compiled = torch.compile(function, backend="stitch", options={"strict": True})
    bits = [bits_of(results_of(compiled, inputs, trains)) for _ in range(runs)]
    found = {"bits": bits[0], "unequal": sum(b != bits[0] for b in bits), "runs": runs}
    counters = torch_stitch.counters()
    return found | {name: counters[name] for name in ("kernels", "cache_hits_disk")}


def run_in_orders(first, orders):
    """ptxsim accuses a kernel whose bits differ between two orders, and all else that it does."""
    _core.set_simulated_orders(orders)
    options, accused = {"strict": True, "target": "h200", "simulate": True}, []
    for program in programs_of(first, small=True):
        torch._dynamo.reset()
        try:
            torch.compile(program.load(), backend="stitch", options=options)(*program.inputs)
        except Exception as error:
            accused.append(f"seed {program.seed}: {str(error)[:1000]}")
    kernels = torch_stitch.counters()["kernels"]
    return {"orders": orders, "kernels": kernels, "accused": accused}


def main(kind, count, *firsts):
    rows = []
    for first in map(int, firsts):
        torch._dynamo.reset()
        torch_stitch.reset_counters()
        rows.append({"calls": call_again, "orders": run_in_orders}[kind](first, int(count)))
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
