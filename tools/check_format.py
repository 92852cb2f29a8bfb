"""Checks C++ with clang-format, Python with ruff and the package's types with mypy, at the versions
pinned in pyproject.toml.

With --fix, formats instead.  A tool that is absent or of another version is reported and its check
left out: other versions judge differently.
"""

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tomllib

from source_files import CPP_SUFFIXES, ROOT, list_sources

# Runs the wheel's own program: its script may lie in another environment's bin/.
CLANG_FORMAT = "import clang_format; clang_format.clang_format()"


def pinned_versions() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(pin.split("==") for pin in project["optional-dependencies"]["lint"])


def is_installed(name: str, version: str) -> bool:
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def run_clang_format(is_fix: bool) -> bool:
    """Prints the first fault of each file: the rest follow from `make format`."""
    files = list_sources(ROOT, *CPP_SUFFIXES)
    options = ["-i"] if is_fix else ["--dry-run", "--Werror"]
    command = [sys.executable, "-c", CLANG_FORMAT, *options, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    seen = set()
    for line in done.stderr.splitlines():
        path = line.split(":")[0]
        if path in files and path not in seen:
            seen.add(path)
            print(line)
    if done.returncode != 0 and not seen:
        print(done.stderr)
    return done.returncode == 0


def run_ruff(is_fix: bool) -> bool:
    options = ["--quiet", "--output-format=concise", *(["--fix"] if is_fix else [])]
    command = [sys.executable, "-m", "ruff", "check", *options, *list_sources(ROOT, ".py")]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def run_mypy(is_fix: bool) -> bool:
    """What it checks, and how strictly, is in pyproject.toml; types are not mended."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    return is_fix or subprocess.run(command, cwd=ROOT).returncode == 0


CHECKS = {"clang-format": run_clang_format, "ruff": run_ruff, "mypy": run_mypy}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true")
    is_fix = parser.parse_args().fix
    versions = pinned_versions()
    failed = []
    for name, check in CHECKS.items():
        if not is_installed(name, versions[name]):
            print(f"check_format: {name} {versions[name]} is not installed, its check is left out")
            if os.environ.get("STITCH_CI", "0") not in ("", "0"):
                failed.append(name)
        elif not check(is_fix):
            failed.append(name)
    if failed:
        print(f"check_format: {', '.join(failed)} found faults (make format repairs most)")
    else:
        print("check_format: ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
