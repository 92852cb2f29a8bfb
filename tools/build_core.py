"""Configures and builds with CMake and ninja: `build_core.py [target ...]`, all targets by default.

Used by the Makefile and by setup.py; needs no setuptools.  CMake is configured again when what it
was configured for (interpreter, torch, options, place of the sources) differs.
"""

import argparse
import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD_DIR = ROOT / "build" / "cmake"
CMAKE_MINIMUM = (3, 22)  # cmake_minimum_required in CMakeLists.txt
NINJA_MINIMUM = (1, 10)


def tool_candidates(name: str) -> list[str]:
    """Where `name` may be: beside this interpreter, on PATH, in its wheel."""
    candidates = [shutil.which(name, path=sysconfig.get_path("scripts")), shutil.which(name)]
    try:
        wheel = importlib.metadata.distribution(name)
        programs = [wheel.locate_file(file) for file in wheel.files or [] if file.name == name]
        candidates += [shutil.which(Path(program).resolve()) for program in programs]
    except importlib.metadata.PackageNotFoundError:
        pass
    return [str(path) for path in candidates if path]


def find_tool(name: str, minimum: tuple[int, int]) -> str | None:
    """The path of the first `name` that runs and is new enough."""
    for path in tool_candidates(name):
        try:
            answer = subprocess.run([path, "--version"], capture_output=True, text=True)
        except OSError:
            continue
        version = re.search(r"(\d+)\.(\d+)", answer.stdout)
        if answer.returncode == 0 and version and tuple(map(int, version.groups())) >= minimum:
            return path
    return None


def find_cmake() -> str | None:
    return find_tool("cmake", CMAKE_MINIMUM)


def find_ninja() -> str | None:
    return find_tool("ninja", NINJA_MINIMUM)


def installed_version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def configure(build_dir: Path, cmake: str, ninja: str, options: dict[str, object]) -> None:
    """Runs CMake unless `build_dir` already was configured with exactly these arguments."""
    definitions = {
        "CMAKE_MAKE_PROGRAM": ninja,
        "Python_EXECUTABLE": sys.executable,
        **options,
    }
    command = [cmake, "-G", "Ninja", "-S", str(ROOT), "-B", str(build_dir)]
    command += [f"-D{name}={value}" for name, value in definitions.items()]
    signature = "\n".join([*command, "torch " + installed_version("torch")])
    record = build_dir / "configured_for.txt"
    is_configured = (build_dir / "build.ninja").exists() and record.exists()
    if is_configured and record.read_text() == signature:
        return
    (build_dir / "CMakeCache.txt").unlink(missing_ok=True)
    record.unlink(missing_ok=True)
    build_dir.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=True)
    record.write_text(signature)


def build(build_dir: Path, targets: list[str], options: dict[str, object]) -> None:
    cmake, ninja = find_cmake(), find_ninja()
    if not cmake or not ninja:
        missing = "CMake 3.22" if not cmake else "ninja 1.10"
        raise SystemExit(
            f"{missing} or newer was not found beside {sys.executable} or on PATH: "
            "run `make setup`, or `pip install cmake ninja`"
        )
    configure(build_dir, cmake, ninja, options)
    command = [cmake, "--build", str(build_dir)]
    for target in targets:
        command += ["--target", target]
    subprocess.run(command, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=Path, default=BUILD_DIR)
    parser.add_argument("-D", dest="options", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    options = dict(option.split("=", 1) for option in arguments.options)
    try:
        build(arguments.build_dir, arguments.targets, options)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
