"""ptxsim.run(): one CUDA or PTX kernel on CPU tensors, all it reads, writes and waits for checked.

On the command line a kernel's arguments are words: a Python number, or a tensor as
dtype[sizes]=fill:role, such as f32[4,1000]=rand:in; fill (else zeros) and role may be left out.
"""

import ast
import math
import re

import torch

from torch_stitch._core import Finding, Result, StitchError
from torch_stitch._core import run_kernel as run
from torch_stitch.fx_ops import DTYPES

__all__ = ["Finding", "Result", "run"]
TYPES = {short: dtype for dtype, short in DTYPES.items()}
TENSOR = r"(\w+)\[([\d,]*)\](?:=(zeros|ones|rand|arange|empty))?(?::(in|out))?"


def make_argument(word):
    """The value that a word of the command line stands for, and its role or None."""
    match = re.fullmatch(TENSOR, word)
    if match is None or match[1] not in TYPES:
        try:
            return ast.literal_eval(word), None
        except (SyntaxError, ValueError):
            form = "a number, or dtype[sizes]=zeros|ones|rand|arange|empty:in|out"
            text = f"found the argument {word!r}; it can be {form}; dtypes are {', '.join(TYPES)}"
            raise StitchError(text) from None
    name, sizes, fill, role = match.groups()
    shape = [int(size) for size in sizes.split(",") if size]
    if fill == "rand":
        return torch.testing.make_tensor(shape, dtype=TYPES[name], device="cpu"), role
    if fill == "arange":
        return torch.arange(math.prod(shape)).reshape(shape).to(TYPES[name]), role
    return getattr(torch, fill or "zeros")(shape, dtype=TYPES[name]), role


def run_command(source, kernel, words, **options):
    torch.manual_seed(options["seed"])
    values, roles = zip(*map(make_argument, words)) if words else ((), ())
    for role, name in (("in", "inputs"), ("out", "outputs")):
        options[name] = [i for i, given in enumerate(roles) if given == role]
    return run(source, kernel, args=values, **options)
