"""Where the user wrote what a graph holds, and warnings that point there, each said once."""

import os
import re
import sys
import warnings

import torch

from torch_stitch import _core

TORCH_DIRECTORY, OUR_DIRECTORY = (os.path.dirname(path) for path in (torch.__file__, __file__))
FRAME, SAID = re.compile(r'File "([^"]+)", line (\d+)'), {}


def find_frame(node):
    """The innermost frame of the user's that made this node: file and line; nothing if unknown."""
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    frames = [f for f in frames if os.path.dirname(f[0]) != OUR_DIRECTORY]
    frames = [f for f in frames if not f[0].startswith(TORCH_DIRECTORY)] or frames
    return (frames[-1][0], int(frames[-1][1])) if frames else None


def find_location(node):
    frame = find_frame(node)  # as "model.py:31"
    return f"{os.path.basename(frame[0])}:{frame[1]}" if frame else ""


def name_ops(nodes):
    return list(dict.fromkeys(f"{node.target} {find_location(node)}".strip() for node in nodes))


def count_fallback(what, nodes, reasons):
    _core.count_fallback(len(nodes))
    caller = sys._getframe(1)  # of what is being compiled, where nothing is known of the ops
    while caller.f_back and caller.f_code.co_filename.startswith((TORCH_DIRECTORY, OUR_DIRECTORY)):
        caller = caller.f_back
    places = [*filter(None, map(find_frame, nodes)), (caller.f_code.co_filename, caller.f_lineno)]
    what = f"torch_stitch: {what}. " + "\n".join(reasons)
    warnings.warn_explicit(what, UserWarning, *places[0], registry=SAID)
