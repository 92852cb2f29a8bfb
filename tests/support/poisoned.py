"""CUDA errors that stay: after an illegal address or a failed assert a process can run no more."""

import torch

ENDED = "the process ended"
EXIT_CODE = 75  # of a process that wrote down what poisoned it; a new one goes on


def is_poison(text):
    """Whether what was found names an error after which a process may be of no use."""
    return bool(text) and ("CUDA error" in text or PoisonedError.__name__ in text)


class PoisonedError(Exception):
    """The process is to write down what it was at, and to end."""


def check_device(device, doing=""):
    """Waits for the device; a PoisonedError where nothing runs on it any more."""
    if torch.device(device).type != "cuda":
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:
        text = f"{doing}: {type(error).__name__}: {str(error)[:300]}"
        raise PoisonedError(text.removeprefix(": ")) from error
