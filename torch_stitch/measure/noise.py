"""Whether one backend takes more time than another, or the difference lies inside the noise.

The ratio is taken within each round, so that what disturbs a round disturbs both sides of it.  The
interval is the distribution-free one for a median, the inverse of the sign test: between two of the
sorted ratios, so far out that the true median lies beyond them in at most 1 of 100 cases.  A
difference counts where the whole interval lies beyond a margin of 2 %: by so much two equal
functions may differ for the whole life of a process, through where their code and memory lie.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

CONFIDENCE = 0.99
MARGIN = 1.02
LEAST_ROUNDS = 1 + math.ceil(-math.log2(1 - CONFIDENCE))  # both ends of so many are far enough out


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How many times the time of `fast` `slow` takes, and the interval around that."""

    fast: str
    slow: str
    ratio: float
    low: float
    high: float

    @property
    def is_different(self) -> bool:
        return self.low > MARGIN

    def __str__(self) -> str:
        interval = f"({self.low:.2f} to {self.high:.2f})"
        if self.is_different:
            return f"{self.fast} is {self.ratio:.2f} {interval} times as fast as {self.slow}"
        return f"{self.fast} and {self.slow}: the difference is inside the noise {interval}"


def interval_of_median(values: Sequence[float]) -> tuple[float, float]:
    """(low, high); fewer than LEAST_ROUNDS values tell nothing."""
    values, outside, found = sorted(values), 0.0, (0.0, math.inf)
    for k in range(len(values) // 2):
        # Each side: the chance that at most k of the values lie beyond the median.
        outside += 2 * math.comb(len(values), k) / 2 ** len(values)
        if outside > 1 - CONFIDENCE:
            break
        found = values[k], values[-1 - k]
    return found


def compare_times(times: Mapping[str, Sequence[float]], first: str, second: str) -> Verdict:
    """The verdict on two of name -> milliseconds by round; the faster by the median comes first."""
    ratios = [b / a for a, b in zip(times[first], times[second], strict=True)]
    if statistics.median(ratios) < 1:
        return compare_times(times, second, first)
    return Verdict(first, second, statistics.median(ratios), *interval_of_median(ratios))
