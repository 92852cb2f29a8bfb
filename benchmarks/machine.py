"""What a figure was measured on, without names of hosts or paths."""

import datetime
import os
import platform
import shlex
import subprocess
from pathlib import Path

import torch

from torch_stitch import _core

ROOT = Path(__file__).resolve().parent.parent


def device():
    """Where models run: the GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def machine_class():
    """ "cpu-2core-avx512", or "nvidia-h200"."""
    if device() == "cuda":
        return torch.cuda.get_device_name().lower().replace(" ", "-")
    return f"cpu-{os.cpu_count()}core-{torch.backends.cpu.get_cpu_capability().lower()}"


def first_line(command):
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return (answer.stdout.splitlines() or ["unknown"])[0]


def commit():
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no"])
    name = first_line(["git", "rev-parse", "--short=12", "HEAD"])
    return name + ("" if changed == "unknown" or name == "unknown" else " with changes")


def describe():
    """Date, machine class and versions: stands in every result file."""
    compiler = shlex.split(_core.get_option({}, "cxx"))
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine_class(),
        "threads": torch.get_num_threads(),
        "load_average": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "compiler": first_line([*compiler, "--version"]),
        "commit": commit(),
    }
