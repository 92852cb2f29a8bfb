"""Which row of the device table kernels are planned for."""

import torch

from torch_stitch import _core
from torch_stitch._core import UnsupportedError
from torch_stitch.fx_import import tensors_of


def devices_of(gm, example_inputs):
    """Of tensors; numbers that lie on the CPU beside them do not count."""
    nodes = [t for node in gm.graph.nodes for t in tensors_of(node)]
    tensors = nodes + [x for x in example_inputs if isinstance(x, torch.Tensor)]
    wide = {t.device for t in tensors if t.dim() or t.device.type != "cpu"}
    return wide or {t.device for t in tensors}


def find_target(devices, options=None):
    """The row of the device table for these devices; an UnsupportedError where there is none."""
    if all(device.type == "cpu" for device in devices):
        return _core.find_host_target(options or {})
    names = ", ".join(sorted(map(str, devices)))
    if len(devices) == 1 and names.startswith("cuda") and not torch.version.hip:
        found = torch.cuda.get_device_properties(*devices)
        hopper = "h200" if found.total_memory > 100e9 else "h100"
        rows = {(8, 0): "a100", (9, 0): hopper, (10, 0): "b200"}
        if row := rows.get((found.major, found.minor)):
            return row
        names += f", {found.name}"
    raise UnsupportedError(f"found tensors on {names}; kernels are for a CPU, or one GPU of a row")
