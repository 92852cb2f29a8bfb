"""Lets setuptools build the extension with CMake; metadata is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))
from build_core import build  # noqa: E402


class BuildWithCMake(build_ext):
    def build_extension(self, ext):
        output_dir = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        build_dir = Path(self.build_temp).resolve() / "cmake"
        build(build_dir, ["_core"], {"STITCH_OUTPUT_DIR": output_dir, "STITCH_TESTS": "OFF"})


setup(
    license="Apache-2.0",
    license_files=["LICENSE", "third_party/*/LICENSE"],  # what the library is built of
    ext_modules=[Extension("torch_stitch._core", sources=[])],
    cmdclass={"build_ext": BuildWithCMake},
)
