"""Runs all Python tests under each supported Python and torch, in environments of their own.

    tools/test_versions.py set-up [NAME ...]   makes the environments; the only step with a network
    tools/test_versions.py run [NAME ...]      builds HEAD and tests in each that has no result yet

`run` takes an interpreter with this checkout built: `make build`, then .venv/bin/python.

NAME is as in `py3.12-torch2.11`; without any, all nine.  Each has a folder in --folder: `env`, a
virtual environment, `checkout`, a clone of HEAD built there, and `result.json`, which names its
commit: a run that was ended goes on where it was.  What has a result of HEAD is not run again.
The tests run without a network where this user may take it away (`unshare`).  The outcome of all
is benchmarks/results/<machine>/versions.json.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PYTHONS = ("3.11", "3.12", "3.13")
TORCHES = ("2.11", "2.12", "2.13")
NAMES = [f"py{python}-torch{torch}" for torch in TORCHES for python in PYTHONS]
OWN_PACKAGES = ["numpy", "pytest>=8", "setuptools"]
NVRTC = "nvidia-cuda-nvrtc>=13"  # where torch's wheel does not ask for one itself
WITHOUT_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "-"]
VERSIONS = """
import importlib.metadata as m, sys, torch
print(sys.version.split()[0], torch.__version__, m.version("nvidia-cuda-nvrtc"))
"""


def say(text):
    print(f"versions: {text}", flush=True)


def split_name(name):
    python, torch = name.removeprefix("py").split("-torch")
    return python, torch


def find_python(version):
    """An interpreter of this version: on the path, or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), sys.executable]
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return str(candidate)
    raise SystemExit(f"versions: Python {version} was not found: put python{version} on the path")


def head(root=ROOT):
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def check_out(folder):
    """HEAD in the clone of this folder, its build left where it was."""
    checkout = folder / "checkout"
    if not checkout.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    git = ["git", "-C", checkout]
    subprocess.run([*git, "fetch", "--quiet", "origin", head()], check=True)
    subprocess.run([*git, "checkout", "--quiet", "--detach", head()], check=True)
    return checkout


def set_up(name, folder):
    python, torch = split_name(name)
    env = folder / "env"
    if not (env / "bin/python").exists():
        say(f"{name}: making the environment")
        subprocess.run([find_python(python), "-m", "venv", env], check=True)
    pip = [env / "bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"torch=={torch}.*", *OWN_PACKAGES], check=True)
    subprocess.run([*pip, NVRTC], check=True)
    checkout = check_out(folder)
    make = ["make", f"PYTHON={env / 'bin/python'}", ".venv/ready_test"]
    subprocess.run(make, cwd=checkout, env=os.environ | {"STITCH_CI": "1"}, check=True)


def run(name, folder, pytest_options):
    """The result of HEAD in this environment; pytest says which tests failed."""
    from benchmarks.pytest_summary import summarize

    checkout = check_out(folder)
    python, xml = checkout / ".venv/bin/python", folder / "junit.xml"
    xml.unlink(missing_ok=True)
    may = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True).returncode == 0
    apart = WITHOUT_NETWORK if may else []
    environment = os.environ | {"STITCH_CI": "1", "PIP_NO_INDEX": "1"}
    subprocess.run([*apart, "make", "build"], cwd=checkout, env=environment, check=True)
    what = pytest_options or ["tests/python"]
    tests = [python, "-m", "pytest", "-q", f"--junitxml={xml}", *what]
    subprocess.run([*apart, *tests], cwd=checkout, env=environment)
    if not xml.exists():
        raise SystemExit(f"versions: {name}: pytest left no result")
    seconds, rows = summarize(xml, name)
    versions = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    return {
        "commit": head(checkout),  # there may be newer ones by now
        "versions": dict(zip(("python", "torch", "nvrtc"), versions.stdout.split())),
        "network": not may,
        "seconds": seconds,
        "passed": rows[0].value,
        "failed": rows[1].detail,
        "skipped": rows[2].detail,
    }


def write_results(names, folder):
    """One row for each combination; what did not run says so."""
    from benchmarks import machine
    from benchmarks.rows import Row
    from benchmarks.run import print_row, results_directory, write_group

    rows, seconds = [], 0
    for name in names:
        path = folder / name / "result.json"
        if not path.exists():
            rows.append(Row(f"{name}: tests failed", "not run"))
            continue
        result = json.loads(path.read_text())
        seconds += result["seconds"]
        rows.append(Row(f"{name}: tests failed", len(result["failed"]), 0, detail=result))
    write_group("versions", rows, seconds, results_directory(machine.describe()))
    for row in rows:
        print_row(row)
    return 0 if all(row.ok for row in rows) else 1


def has_result(path):
    return path.exists() and json.loads(path.read_text())["commit"] == head()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["set-up", "run"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--folder", type=Path, default=ROOT / "build/versions")
    parser.add_argument("--tests", nargs="+", help="for pytest, instead of all; no result is kept")
    args = parser.parse_args()
    if unknown := set(args.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in args.names or NAMES:
        folder = args.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if args.step == "set-up":
            set_up(name, folder)
        elif args.tests or not has_result(folder / "result.json"):
            say(f"{name}: testing {head()[:12]}")
            result = run(name, folder, args.tests)
            if not args.tests:
                (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return write_results(NAMES, args.folder) if args.step == "run" and not args.tests else 0


if __name__ == "__main__":
    sys.exit(main())
