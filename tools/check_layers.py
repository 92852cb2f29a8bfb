"""Proves that csrc/ is layered: a room includes itself and rooms of lower numbers only.

The rules are the tables below; anything else is allowed.  Exit status 1 if a rule is broken.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from source_files import CPP_SUFFIXES, ROOT, list_sources, strip_comments

# Rooms of equal number do not include each other.  Files directly in csrc/ are the spine.
SPINE = "csrc/*"
ROOMS = {
    "base": 0,
    "config": 1,
    "ops": 1,
    "ir": 2,
    "analysis": 3,
    "cost": 4,
    "rewrite": 5,
    "stage": 6,
    "plan": 7,
    "codegen": 8,
    "jit": 9,
    "runtime": 10,
    "clock": 10,  # a timing model: sees base/ and the device table
    "ptxsim": 11,  # stands in for the driver: sees runtime/, is seen by the spine and bindings/
    "host_ops": 11,  # ops that torch's dispatcher runs on the host: kernels, decompositions
    SPINE: 12,
    "bindings": 13,
}
DEVICE = "device"  # compiled into kernels: includes nothing but itself


class Ban(NamedTuple):
    pattern: str  # searched in each line, comments left out
    allowed_in: set[str]  # rooms
    reason: str


BANS = [
    Ban(
        r'#\s*include\s*[<"](pybind11/|torch/csrc/.*(python|pybind)|Python\.h)',
        {"bindings"},
        "only bindings/ sees pybind11 and Python",
    ),
    Ban(
        r'#\s*include\s*[<"](torch|ATen|c10|caffe2)/',
        {"bindings", "host_ops"},
        "only bindings/ and host_ops/ see torch",
    ),
    Ban(
        r'#\s*include\s*[<"](cuda|nvrtc|cooperative_groups|cub/|thrust/|nv/)',
        set(),
        "no CUDA header anywhere: driver and NVRTC are loaded at run time",
    ),
    Ban(r"\b(secure_)?getenv\s*\(", {"config"}, "only config/ reads the environment"),
    Ban(
        r"\bcase OpKind::",
        {"ops", "analysis"},  # analysis/ gives each view its index map
        "what differs between ops is a column of ops/ops.def",
    ),
    Ban(r"#\s*include\s*<", set(ROOMS), "kernels include no header but device/"),
    Ban(r"\bstd::cout\b|\bprintf\s*\(|\bputs\s*\(", set(), "stdout belongs to the user"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def room_of(path: str) -> str:
    """The room of a path relative to csrc/."""
    folder = path.split("/")[0]
    return folder if "/" in path else SPINE


# What rooms that stand beside the stack include of it; all that they may.
ASIDE = {"clock": {"base/", "cost/device_spec.h", "clock/"}}


def check_include(room: str, included: str) -> str | None:
    """Why a file of `room` may not include "included", or nothing."""
    target = room_of(included)
    if room == DEVICE:
        return None if target == DEVICE else "device/ is compiled into kernels, without other rooms"
    if target == DEVICE:
        return "device/ is compiled into kernels: the host takes its text, it does not include it"
    if not included.startswith(tuple(ASIDE.get(room, {""}))):
        return f"room {room} includes {', '.join(sorted(ASIDE[room]))} only, not {included}"
    if target not in ROOMS:
        return f'"{included}" names no room: includes are relative to csrc/, as "ir/graph.h"'
    if target == SPINE and room not in (SPINE, "bindings"):
        return f'"{included}" names the spine; a file of this room is "{room}/{included}"'
    if room != target and ROOMS[target] >= ROOMS[room]:
        return f"room {room} ({ROOMS[room]}) may not include {target} ({ROOMS[target]})"
    return None


def check_file(path: str, text: str) -> list[str]:
    """Broken rules in one file of csrc/; `path` is relative to csrc/."""
    room = room_of(path)
    if room not in ROOMS and room != DEVICE:
        return [f"csrc/{path}: {room}/ is no room (tools/check_layers.py lists them)"]
    faults = []
    for number, line in enumerate(strip_comments(text).split("\n"), start=1):
        reasons = [
            ban.reason
            for ban in BANS
            if room not in ban.allowed_in and re.search(ban.pattern, line)
        ]
        include = INCLUDE.match(line)
        if include and not reasons:
            reasons.append(check_include(room, include[1]))
        faults += [f"csrc/{path}:{number}: {reason}" for reason in reasons if reason]
    return faults


def check_tree(root: Path) -> list[str]:
    faults = []
    for name in list_sources(root, *CPP_SUFFIXES, ".def"):
        if name.startswith("csrc/"):
            path = name.removeprefix("csrc/")
            faults += check_file(path, (root / name).read_text())
    return faults


def main() -> int:
    faults = check_tree(ROOT)
    for fault in faults:
        print(fault)
    print(f"check_layers: {len(faults)} broken rules" if faults else "check_layers: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
