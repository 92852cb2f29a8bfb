"""torch.compile(model, backend="stitch"): memory-bound operators stitched into few kernels.

explain(model, *inputs, target="h200") shows what would be launched; counters() what was built;
ptxsim.run(...) runs one kernel on the CPU, checked.
"""

from torch_stitch import ptxsim
from torch_stitch._core import clear_cache, counters, release_memory, reset_counters
from torch_stitch.backend import stitch
from torch_stitch.explain import explain

__version__ = "0.1.0"
__all__ = ["clear_cache", "counters", "explain", "ptxsim", "release_memory", "reset_counters"]
__all__ += ["stitch"]
