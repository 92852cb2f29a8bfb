"""Backends by name, and functions compiled with them, once with nothing cached and once again."""

import contextlib
import difflib
import os
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

import torch
from torch._inductor.utils import clear_caches, fresh_cache

from torch_stitch._core import StitchError
from torch_stitch.measure.timing import synchronize

How = dict[str, Any] | None  # what torch.compile is given; None: eager
KERNELS = "TORCH_STITCH_CACHE"


def name_backends(backends: Any) -> dict[str, How]:
    if isinstance(backends, str):
        backends = (backends,)
    if not isinstance(backends, Mapping):
        backends = {name: None if name == "eager" else {"backend": name} for name in backends}
    known = sorted(torch.compiler.list_backends(exclude_tags=()))
    for how in backends.values():
        name = how and how.get("backend", "inductor")
        if isinstance(name, str) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ";"
            raise StitchError(f"found the backend {name!r}{hint} known are {', '.join(known)}")
    return dict(backends)


def own_copy(fn: Any) -> Any:
    """A function with a code object of its own: the rivals' entries are not looked up before it."""
    if not isinstance(fn, types.FunctionType):
        return fn
    code = fn.__code__.replace()
    return types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def compile_with(fn: Any, how: How) -> Any:
    return fn if how is None else torch.compile(own_copy(fn), **{"dynamic": False} | how)


def time_first_call(step: Callable[[], Any]) -> float:
    """Seconds of a call, what a backend warns about left out."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="torch._inductor")
        step()
    synchronize()
    return time.perf_counter() - start


def start_backend(how: How) -> None:
    """What a backend imports and starts once in a process is no part of a model's first call."""
    x = torch.randn(8, requires_grad=True)
    call = compile_with(lambda x: (x * 2).relu(), how)
    time_first_call(lambda: call(x).sum().backward())


@contextlib.contextmanager
def fresh_caches() -> Iterator[Callable[[], None]]:
    """Neither compiler finds what was compiled before; yields what makes only this process forget.

    Kernels of stitch are kept in memory by the name of their directory, which therefore moves.
    """
    with tempfile.TemporaryDirectory(prefix="stitch-measure-") as folder, fresh_cache():
        first, second = (os.path.join(folder, name) for name in ("first", "second"))

        def forget() -> None:
            torch._dynamo.reset()
            clear_caches()
            if os.path.isdir(first):
                os.rename(first, second)
            os.environ[KERNELS] = second

        torch._dynamo.reset()
        with patch.dict(os.environ, {KERNELS: first}):
            yield forget
