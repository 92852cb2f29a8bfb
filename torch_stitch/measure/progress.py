"""A bar on a terminal while a measurement goes on; nothing anywhere else."""

import sys

from torch_stitch._core import get_option

COLUMNS, BAR_COLUMNS = 78, 24


class Progress:
    """Of so many stages, each of which may tell how much of it is done."""

    def __init__(self, stages: int) -> None:
        self.stages, self.done, self.name = stages, -1, ""
        self.is_shown = sys.stderr.isatty() and get_option({}, "progress")

    def begin(self, name: str) -> None:
        self.done, self.name = self.done + 1, name
        self.show(0.0)

    def show(self, share: float) -> None:
        filled = "#" * min(BAR_COLUMNS, int(BAR_COLUMNS * (self.done + share) / self.stages))
        self.write(f"[{filled:{BAR_COLUMNS}}] {self.name}"[:COLUMNS])

    def close(self) -> None:
        self.write("")

    def write(self, text: str) -> None:
        if self.is_shown:
            print("\r" + text.ljust(COLUMNS), end="" if text else "\r", file=sys.stderr, flush=True)
