"""Where NVRTC may lie: wheels of NVIDIA beside torch, or torch's own folder."""

import glob
import os

import torch


def find_directories():
    """Folders that hold a libnvrtc, the likeliest first; the core also asks the system's linker."""
    torch_directory = os.path.dirname(torch.__file__)
    packages = os.path.dirname(torch_directory)
    folders = [*glob.glob(os.path.join(packages, "nvidia", "*", "lib")), f"{torch_directory}/lib"]
    return sorted((f for f in folders if glob.glob(f"{f}/libnvrtc.so*")), reverse=True)
