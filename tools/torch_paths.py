"""Prints, as CMake variables, where this interpreter's torch and Python headers are.

Stands in for find_package(Torch), which demands a CUDA toolkit on CUDA wheels, and for
torch.utils.cpp_extension, which imports setuptools.
"""

import sysconfig
from pathlib import Path


def torch_paths() -> dict[str, str]:
    import torch

    root = Path(torch.__file__).resolve().parent
    include = root / "include"
    return {
        "TORCH_VERSION": torch.__version__,
        "TORCH_INCLUDE_DIRS": f"{include};{include / 'torch/csrc/api/include'}",
        "TORCH_LIBRARY_DIR": str(root / "lib"),
        "TORCH_CXX11_ABI": str(int(torch._C._GLIBCXX_USE_CXX11_ABI)),
        "PYTHON_INCLUDE_DIR": sysconfig.get_path("include"),
        "PYTHON_MODULE_SUFFIX": sysconfig.get_config_var("EXT_SUFFIX"),
    }


if __name__ == "__main__":
    for name, value in torch_paths().items():
        print(f'set({name} "{value}")')
