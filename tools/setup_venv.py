"""Makes .venv ready: `setup_venv.py STAGE`, run by the Python of .venv to be.

What can be imported or run already is used; only what is missing is installed.  A torch in
2.11..2.13 that the invoking Python has is used through a link to its packages.  pip is never
called when nothing is missing, so a machine without a network works; what is optional (NVRTC,
numpy, GoogleTest, the linters) may fail with a message, but not where STITCH_CI is set.  Needs the
standard library only.
"""

import os
import re
import shutil
import site
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PYTHON_RANGE = ((3, 11), (3, 13))
TORCH_RANGE = ((2, 11), (2, 13))
TORCH_REQUIREMENT = "torch==2.13.0"
IN_CI = os.environ.get("STITCH_CI", "0") not in ("", "0")
LINKED_PACKAGES = "zz_invoking_python.pth"


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def fail(text: str) -> None:
    raise SystemExit(f"setup: {text}")


def do_without(text: str) -> None:
    fail(f"{text} (STITCH_CI is set: nothing may be missing)") if IN_CI else say(text)


def run_quietly(command: list, timeout_s: int | None = None) -> subprocess.CompletedProcess | None:
    """The finished command, or nothing if it could not start or took too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None


def python_says(python: Path | str, code: str) -> str | None:
    """What `code` prints, or nothing if it raises."""
    done = run_quietly([str(python), "-c", code])
    return done.stdout.strip() if done and done.returncode == 0 else None


def can_import(module: str) -> bool:
    return python_says(PYTHON, f"import {module}") is not None


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# The environment.


def ensure_venv() -> None:
    version = python_says(PYTHON, "import sys; print(tuple(sys.version_info[:2]))")
    if version == str(tuple(sys.version_info[:2])):
        return
    if VENV.exists():
        say(f".venv is made anew (its Python was {version or 'broken'})")
        shutil.rmtree(VENV)
    say(f"making .venv from {sys.executable}")
    # Without pip, which may not be needed: what comes with it would hide newer packages of the
    # invoking Python.
    venv.create(VENV, with_pip=False, symlinks=True)


def site_packages() -> Path:
    return Path(python_says(PYTHON, "import sysconfig; print(sysconfig.get_path('purelib'))"))


def torch_version(python: Path | str) -> str | None:
    return python_says(python, "import torch; print(torch.__version__)")


def is_supported_torch(version: str | None) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return bool(found) and TORCH_RANGE[0] <= tuple(map(int, found.groups())) <= TORCH_RANGE[1]


def link_invoking_packages() -> None:
    """Lets .venv see the packages of the invoking Python, after its own.

    `--system-site-packages` would not do: from within a virtual environment it shows the packages
    of that environment's base.
    """
    directories = [*site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        directories.append(site.getusersitepackages())
    lines = [f"import site; site.addsitedir({directory!r})" for directory in directories]
    (site_packages() / LINKED_PACKAGES).write_text("\n".join(lines) + "\n")


def ensure_torch() -> None:
    version = torch_version(PYTHON)
    is_foreign = Path(sys.prefix).resolve() != VENV.resolve()
    if not is_supported_torch(version) and is_foreign:
        invoking_version = torch_version(sys.executable)
        if is_supported_torch(invoking_version):
            link_invoking_packages()
            version = torch_version(PYTHON)
    if not is_supported_torch(version):
        say(f"installing {TORCH_REQUIREMENT} (found: {version or 'no torch'}); it is large")
        if not pip_install(TORCH_REQUIREMENT):
            fail(f"{TORCH_REQUIREMENT} could not be installed: torch 2.11 to 2.13 is needed")
        version = torch_version(PYTHON)
    say(f"torch {version}")


def register_package() -> None:
    """What `pip install -e .` would leave: the sources on the path and the entry point.

    The path is relative, so a moved checkout still imports its own sources.
    """
    project = pyproject()
    packages = site_packages()
    info = packages / f"{project['name']}-{project['version']}.dist-info"
    for stale in packages.glob(f"{project['name']}-*.dist-info"):
        shutil.rmtree(stale)
    info.mkdir()
    entry_points = ""
    for group, entries in project["entry-points"].items():
        entry_points += f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items())
    files = {
        packages / "torch_stitch_checkout.pth": os.path.relpath(ROOT, packages) + "\n",
        info / "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\n"
        f"Version: {project['version']}\nSummary: {project['description']}\n",
        info / "entry_points.txt": entry_points,
        info / "INSTALLER": "make\n",
    }
    for path, text in files.items():
        path.write_text(text)
    names = [path.relative_to(packages).as_posix() for path in [*files, info / "RECORD"]]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names))


# Installing.


def pip_command() -> list[str] | None:
    for attempt in range(2):
        if can_import("pip"):
            return [str(PYTHON), "-m", "pip"]
        if attempt == 0:
            run_quietly([PYTHON, "-m", "ensurepip"])
    outer = [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    done = run_quietly([*outer, "--version"])
    return outer if done and done.returncode == 0 else None


def pip_install(*requirements: str, is_optional: bool = False) -> bool:
    pip = pip_command()
    if not pip:
        say("pip is missing: install python3-venv (Debian, Ubuntu) or pip")
        return False
    # What is optional must not keep a machine without a network waiting.
    patience = ["--retries", "1", "--timeout", "15"] if is_optional else []
    command = [*pip, "install", "--quiet", "--disable-pip-version-check", *patience, *requirements]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and not is_optional:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode == 0


def apt_install(package: str) -> bool:
    """Installs a system package if this user may do so without being asked for anything."""
    if not shutil.which("apt-get"):
        return False
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    allowed = not prefix or run_quietly([*prefix, "true"], timeout_s=10)
    if not allowed or (prefix and allowed.returncode != 0):
        return False
    say(f"installing {package} with apt-get")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    apt += ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]
    install = [*apt, "install", "-y", "--no-install-recommends", package]
    for command in (install, [*apt, "update"], install):
        done = run_quietly(command, timeout_s=300)
        if command is install and done and done.returncode == 0:
            return True
    return False


# What each stage needs.


def compiler_finds(header: str, *flags: str) -> bool:
    compiler = os.environ.get("CXX", "c++")
    try:
        done = subprocess.run(
            [*compiler.split(), "-x", "c++", *flags, "-E", "-"],
            input=f"#include <{header}>\n", capture_output=True, text=True,
        )  # fmt: skip
    except OSError:
        fail(f"no C++ compiler: `{compiler}` does not run; install g++ 12 or newer, or set CXX")
    return done.returncode == 0


def ensure_compiler() -> None:
    include = python_says(PYTHON, "import sysconfig; print(sysconfig.get_path('include'))")
    version = python_says(PYTHON, "import sys; print('%d.%d' % sys.version_info[:2])")
    if not compiler_finds("vector"):
        fail("the C++ compiler finds no <vector>: install g++ 12 or newer with its library")
    if compiler_finds("Python.h", f"-I{include}"):
        return
    package = f"libpython{version}-dev"
    if not apt_install(package) or not compiler_finds("Python.h", f"-I{include}"):
        fail(f"no Python.h in {include}: install {package} (Debian, Ubuntu) or python3-devel")


def missing_build_tools() -> list[str]:
    """Asks build_core, which is to find them, within .venv."""
    finders = {"cmake": "find_cmake", "ninja": "find_ninja"}
    code = "import sys; sys.path.insert(0, {!r}); import build_core as b; assert b.{}()"
    tools = str(ROOT / "tools")
    return [n for n, f in finders.items() if python_says(PYTHON, code.format(tools, f)) is None]


def ensure_build_tools() -> None:
    missing = missing_build_tools()
    if missing:
        say("installing " + " ".join(missing))
        pip_install(*missing)
    missing = missing and missing_build_tools()
    if missing:
        fail("CMake 3.22 and ninja 1.10 are needed: install " + " and ".join(missing))


def has_nvrtc() -> bool:
    code = """
import glob, sys
assert any(glob.glob(f"{d}/nvidia/**/libnvrtc.so.*", recursive=True) for d in sys.path if d)
"""
    return python_says(PYTHON, code) is not None


def ensure_optional(what: str, requirements: list[str], is_there, without: str) -> None:
    if is_there():
        return
    say("installing " + " ".join(requirements))
    if not pip_install(*requirements, is_optional=not IN_CI):
        how = "pip install " + " ".join(requirements)
        do_without(f"{what} could not be installed: {without} ({how})")


def ensure_gtest() -> None:
    if compiler_finds("gtest/gtest.h"):
        return
    if not apt_install("libgtest-dev") or not compiler_finds("gtest/gtest.h"):
        do_without(
            "GoogleTest was not found: the C++ tests are left out; "
            "install libgtest-dev (as root: apt-get install libgtest-dev), then `make setup`"
        )


def set_up_build() -> None:
    ensure_venv()
    ensure_torch()
    ensure_compiler()
    ensure_build_tools()
    extras = pyproject()["optional-dependencies"]
    without = "kernels for GPUs cannot be compiled"
    ensure_optional("NVRTC", extras["nvrtc"], has_nvrtc, without)
    without = "torch warns about it at import"
    ensure_optional("numpy", ["numpy"], lambda: can_import("numpy"), without)
    register_package()


def set_up_test() -> None:
    set_up_build()
    if not can_import("pytest"):
        say("installing pytest")
        if not pip_install("pytest>=8"):
            fail("pytest is needed for `make test`: pip install pytest")
    without = "files of tests run one after the other"
    ensure_optional("pytest-xdist", ["pytest-xdist"], lambda: can_import("xdist"), without)
    ensure_gtest()


def set_up_lint() -> None:
    ensure_venv()
    for requirement in pyproject()["optional-dependencies"]["lint"]:
        name, version = requirement.split("==")
        code = f"import importlib.metadata as m; assert m.version({name!r}) == {version!r}"
        ensure_optional(
            name,
            [requirement],
            lambda code=code: python_says(PYTHON, code) is not None,
            "its check is left out",
        )


def set_up_models() -> None:
    """The libraries of `make models`; torch stays as it is, whatever their wheels ask for."""
    torch = torch_version(PYTHON)
    for requirement in pyproject()["optional-dependencies"]["models"]:
        name = requirement.split("==")[0]
        if find_version(name) is None and not pip_install(requirement, f"torch=={torch}"):
            fail(f"{name} is needed for `make models`: pip install {requirement}")


def set_up_notebooks() -> None:
    """What executes the notebooks, and what they show their results with."""
    wanted = pyproject()["optional-dependencies"]["notebooks"]
    missing = [x for x in wanted if find_version(x.split(">=")[0]) is None]
    if missing and not pip_install(*missing):
        fail(f"`make notebooks` needs {' '.join(missing)}: pip install {' '.join(missing)}")


def find_version(package: str) -> str | None:
    return python_says(
        PYTHON, f"import importlib.metadata as m; print(m.version({package!r}))"
    )


# Each stage and the stages it includes; `ready_*` files tell make that they are done.
STAGES = {
    "build": (set_up_build, ["build"]),
    "test": (set_up_test, ["test", "build"]),
    "lint": (set_up_lint, ["lint"]),
    "models": (set_up_models, []),
    "notebooks": (set_up_notebooks, []),
}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in STAGES:
        fail("usage: setup_venv.py " + "|".join(STAGES))
    if not PYTHON_RANGE[0] <= sys.version_info[:2] <= PYTHON_RANGE[1]:
        fail(f"Python 3.11 to 3.13 is needed; {sys.executable} is {sys.version.split()[0]}")
    set_up, included = STAGES[sys.argv[1]]
    set_up()
    for stage in included:
        (VENV / f"ready_{stage}").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
