"""Comparison: what benchmark() found, as numbers, text, a table of pandas, bars and HTML."""

import dataclasses
import html
import importlib
import math
from collections.abc import Callable, Iterable
from typing import Any

from torch_stitch.measure.noise import Verdict, compare_times
from torch_stitch.measure.timing import spread


@dataclasses.dataclass(frozen=True)
class Measured:
    """Of one backend; None where it does not apply or nobody tells.

    Errors are against fp64: of results, inputs that are written to, gradients and buffers.
    """

    name: str
    round_ms: tuple[float, ...]  # milliseconds of a step, one number per round
    cold_s: float | None = None  # the first call, nothing cached
    warm_s: float | None = None  # the first call that finds on disk what another process compiled
    peak_bytes: int | None = None  # during a step, above what lives between steps
    launches: int | None = None  # kernels and library calls
    moved_bytes: int | None = None  # each tensor of a launch once
    rmse: float | None = None  # the largest of all these tensors
    worst: float | None = None  # of all their elements

    def figures(self) -> dict[str, Any]:
        """All numbers by name; names carry units."""
        ms = spread(self.round_ms)
        times = dict(zip(COLUMNS, (ms["median"], ms["q1"], ms["q3"])))
        return times | {name: getattr(self, name) for name in COLUMNS if name not in times}


def import_extra(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        needed = f"{what} needs {module.split('.')[0]}, which is not here"
        raise ImportError(f"{needed}: pip install torch_stitch[notebooks]") from error


def digits(x: float) -> str:
    """Three that count, without an exponent."""
    places = 2 - math.floor(math.log10(abs(x))) if x else 0
    return f"{x:,.{max(0, places)}f}"


# name, as in Measured.figures() -> head, and how a number is written
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "median_ms": ("median ms", digits),
    "quartile1_ms": ("quartile 1", digits),
    "quartile3_ms": ("quartile 3", digits),
    "cold_s": ("cold s", digits),
    "warm_s": ("warm s", digits),
    "peak_bytes": ("peak MB", lambda x: digits(x / 1e6)),
    "launches": ("launches", str),
    "moved_bytes": ("moved MB", lambda x: digits(x / 1e6)),
    "rmse": ("rmse", "{:.1e}".format),
    "worst": ("worst", "{:.1e}".format),
}


@dataclasses.dataclass(frozen=True)
class Comparison:
    title: str
    measured: tuple[Measured, ...]
    failed: dict[str, str]  # name -> why it could not be measured
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Measured:
        return {row.name: row for row in self.measured}[name]

    def verdict(self, first: str, second: str) -> Verdict:
        """Which of two backends is faster, if the rounds can tell."""
        return compare_times({row.name: row.round_ms for row in self.measured}, first, second)

    def verdicts(self) -> list[Verdict]:
        """Of the fastest by its median and each of the others."""
        fastest = min(self.measured, key=lambda row: row.figures()["median_ms"])
        return [self.verdict(fastest.name, x.name) for x in self.measured if x is not fastest]

    def remarks(self) -> list[str]:
        rounds = len(self.measured[0].round_ms)
        failed = [f"{name} is left out: {why}" for name, why in self.failed.items()]
        return [*map(str, self.verdicts()), *failed, *self.notes, f"{rounds} rounds"]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Heads, and per backend its name and texts, without columns that say nothing."""
        figures = {row.name: row.figures() for row in self.measured}
        columns = [x for x in COLUMNS if any(row[x] is not None for row in figures.values())]

        def text(name: str, x: Any) -> str:
            return "-" if x is None else COLUMNS[name][1](x)

        return ["backend", *(COLUMNS[x][0] for x in columns)], [
            [name, *(text(x, row[x]) for x in columns)] for name, row in figures.items()
        ]

    def __str__(self) -> str:
        heads, rows = self.cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows)]

        def line(row: list[str]) -> str:
            name, *numbers = map(str.rjust, row, widths)
            return "  ".join([name.lstrip().ljust(widths[0]), *numbers])

        return "\n".join([self.title, *map(line, [heads, *rows]), *self.remarks()])

    def _repr_html_(self) -> str:
        def line(tag: str, row: Iterable[str]) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in row)}</tr>"

        heads, rows = self.cells()
        table = "".join([line("th", heads), *(line("td", row) for row in rows)])
        remarks = "<br>".join(map(html.escape, self.remarks()))
        return f"<b>{html.escape(self.title)}</b><table>{table}</table>{remarks}"

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row per backend, units in the columns' names."""
        pandas = import_extra("pandas", "to_frame()")
        rows = {row.name: row.figures() for row in self.measured}
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("backend")

    def plot(self) -> Any:
        """A figure of matplotlib: times with quartiles, and first calls."""
        pyplot = import_extra("matplotlib.pyplot", "plot()")
        height = 1.4 + 0.5 * len(self.measured)
        figure, (times, firsts) = pyplot.subplots(
            1, 2, figsize=(10, height), layout="constrained", sharey=True
        )
        pyplot.close(figure)  # a notebook shows what a cell returns, once
        for place, row in enumerate(self.measured):
            color, ms = f"C{place}", spread(row.round_ms)
            around = [[ms["median"] - ms["q1"]], [ms["q3"] - ms["median"]]]
            times.barh(place, ms["median"], xerr=around, capsize=4, color=color, alpha=0.8)
            if row.cold_s is not None:
                firsts.barh(place - 0.2, row.cold_s, 0.4, color=color, alpha=0.8)
                firsts.barh(place + 0.2, row.warm_s, 0.4, color=color, alpha=0.4)
        times.set_yticks(range(len(self.measured)), [row.name for row in self.measured])
        times.invert_yaxis()
        times.set_xlabel("ms of a step: median and quartiles")
        firsts.set_xlabel("s of the first call: cold (dark), warm (light)")
        figure.suptitle(self.title, fontsize="medium")
        return figure
