"""torch.compile(model, backend="stitch"): memory-bound operators stitched into few kernels.

explain() shows plans, counters() what was built; benchmark() measures; ptxsim.run() checks kernels.
"""

from torch_stitch import ptxsim
from torch_stitch._core import clear_cache, counters, release_memory, reset_counters, synchronize
from torch_stitch.backend import stitch
from torch_stitch.explain import explain
from torch_stitch.measure import benchmark

__version__ = "0.1.0"
__all__ = ["benchmark", "clear_cache", "counters", "explain", "ptxsim", "release_memory"]
__all__ += ["reset_counters", "stitch", "synchronize"]
