"""Memory that a call takes at its peak, above what is held between calls."""

import ctypes
import gc
from pathlib import Path

import torch

from torch_stitch._core import release_memory

PROCESS = Path("/proc/self")


def peak_bytes(call):
    """Of the GPU by torch's allocator, else of the process; None where the system does not tell."""
    if torch.cuda.is_available():
        call()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        rest = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - rest
    release_memory()
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    try:
        (PROCESS / "clear_refs").write_text("5")  # the peak is forgotten
    except OSError:  # only Linux has it, and not everywhere
        return None
    rest = resident("VmRSS")
    call()
    return resident("VmHWM") - rest


def resident(field):
    lines = (PROCESS / "status").read_text().splitlines()
    return next(int(x.split()[1]) << 10 for x in lines if x.startswith(field))
