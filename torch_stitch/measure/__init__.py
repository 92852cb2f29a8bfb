"""benchmark(fn, *inputs): backends measured side by side, in turn, on this machine's device.

What measures is loaded with the first call: compiling a model needs none of it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_stitch.measure.comparison import Comparison


def benchmark(fn: Callable[..., Any], *inputs: Any, training: bool = False, seconds: float = 10.0,
              backends: Any = ("eager", "inductor", "stitch")) -> "Comparison":
    """fn(*inputs) under each backend, as a Comparison: print() shows it, and so does a notebook.

    `backends` are names that torch.compile knows, and "eager"; or a dict of names to what
    torch.compile is given: {"unfused": {"backend": "stitch", "options": {"policy": "none"}}}.
    With `training` a step is a forward and a backward pass; the loss is the mean of squares of
    what fn returns, or its result where that is one number.
    `seconds` is the time of the rounds, 8 at least, in which each backend is called in turn; what
    compiling takes comes on top.  fn, inputs and random numbers of the caller stay as they are;
    what this process has compiled is compiled again when it is called next.
    A StitchError says in one sentence what cannot be measured.
    """
    from torch_stitch.measure.compare_backends import compare_backends

    return compare_backends(fn, inputs, backends, training, seconds)
