"""torch.compile(model, backend="stitch"): memory-bound operators stitched into few kernels.

explain(model, *inputs, target="h200") shows what would be launched; counters() what was built.
"""

from torch_stitch._core import clear_cache, release_memory
from torch_stitch.backend import counters, reset_counters, stitch
from torch_stitch.explain import explain

__version__ = "0.1.0"
__all__ = ["clear_cache", "counters", "explain", "release_memory", "reset_counters", "stitch"]
