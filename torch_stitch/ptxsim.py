"""ptxsim.run(): one CUDA or PTX kernel on CPU tensors, all it reads, writes and waits for checked.

On the command line a kernel's arguments are words: a Python number, or a tensor as
dtype[sizes]=fill:role, such as f32[4,1000]=rand:in; fill (else zeros) and role may be left out.
"""

from torch_stitch._core import Finding, Result
from torch_stitch._core import run_kernel as run

__all__ = ["Finding", "Result", "run"]
