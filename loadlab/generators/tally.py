"""Count the answers of a load: by latency, and by the second in which each was due."""

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import GeneratorError
from loadlab.model import LatencyBins, PerSecond
from loadlab.stats import histograms, latency_bins

# Latencies up to here are kept to the microsecond, longer ones with 4 significant digits, µs.
EXACT_US = 10_000

Values: TypeAlias = tuple[int, ...]


class AnswerSeries(Struct):
    """Series by second in which a request was due.

    intended: requests of the schedule; answers: [status, body bytes, count] of each second.
    latency_bins: the answers of each second by latency.
    """

    second: list[int]
    intended: list[int]
    answers: list[list[tuple[int, int, int]]]
    p50_us: list[int | None]
    p99_us: list[int | None]
    max_us: list[int | None]
    latency_bins: LatencyBins

    def per_second(self, is_right: Callable[[int, int], bool]) -> PerSecond:
        """Return the series of a result; ``is_right``: of status and body bytes of an answer."""
        return PerSecond(
            second=self.second,
            scheduled=self.intended,
            responses=[sum(count for *_, count in answers) for answers in self.answers],
            ok=[
                sum(count for status, size, count in answers if is_right(status, size))
                for answers in self.answers
            ],
            p50_us=self.p50_us,
            p99_us=self.p99_us,
            max_us=self.max_us,
            latency_bins=self.latency_bins,
        )


def rounded(us: histograms.Integers) -> histograms.Integers:
    """Round values above EXACT_US to 4 significant digits."""
    step = 10 ** np.searchsorted(EXACT_US * 10 ** np.arange(14), us, side="right")
    rounded_us: histograms.Integers = (us + step // 2) // step * step
    return rounded_us


def tally(*columns: histograms.Integers) -> dict[Values, int]:
    """Return how often each combination of values occurs."""
    if not len(columns[0]):
        return {}
    table = np.stack(columns)[:, np.lexsort(columns[::-1])]
    begins = np.flatnonzero(np.append(True, (table[:, 1:] != table[:, :-1]).any(axis=0)))
    counts = np.diff(np.append(begins, table.shape[1])).tolist()
    return dict(zip(zip(*table[:, begins].tolist(), strict=True), counts, strict=True))


def levels_us(us: histograms.Integers) -> tuple[int | None, int | None, int | None]:
    """Return the median, the 99th percentile and the largest of latencies in µs; None of none."""
    if not us.size:
        return None, None, None
    p50, p99, highest = np.percentile(us, [50, 99, 100], method="inverted_cdf")
    return int(p50), int(p99), int(highest)


class Seconds:
    """Builds the series by second from rows in order of their turn."""

    def __init__(self, schedule: Schedule) -> None:
        self._edges = schedule.edges
        self._open: list[npt.NDArray[np.int64]] = []
        self._series = AnswerSeries(
            second=[],
            intended=[after - before for before, after in pairwise(self._edges)],
            answers=[],
            p50_us=[],
            p99_us=[],
            max_us=[],
            latency_bins=latency_bins.record([]),
        )
        self._bins: list[latency_bins.Second] = []

    def add(self, turn: histograms.Integers, *columns: histograms.Integers) -> None:
        """Add rows: their turns, latencies in µs, statuses and body lengths.

        Raises GeneratorError for a turn that is not in the schedule.
        """
        if len(turn) and not 0 <= turn[0] <= turn[-1] < self._edges[-1]:
            raise GeneratorError(
                f"requests {turn[0]} to {turn[-1]} are not all in a schedule of {self._edges[-1]}"
            )
        table = np.stack(columns)
        begin = 0
        while begin < table.shape[1]:
            end = int(np.searchsorted(turn, self._edges[len(self._series.second) + 1]))
            self._open.append(table[:, begin:end])
            begin = end
            if end < table.shape[1]:
                self._close()

    def _close(self) -> None:
        us, statuses, lengths = np.concatenate(self._open or [np.zeros((3, 0), np.int64)], axis=1)
        self._open = []
        series = self._series
        series.second.append(len(series.second))
        answers = tally(statuses, lengths).items()
        series.answers.append([(status, length, count) for (status, length), count in answers])
        p50, p99, highest = levels_us(us)
        series.p50_us.append(p50)
        series.p99_us.append(p99)
        series.max_us.append(highest)
        self._bins.append(latency_bins.counted(us))

    def series(self) -> AnswerSeries:
        """Return the series, after all rows."""
        while len(self._series.second) < len(self._edges) - 1:
            self._close()
        self._series.latency_bins = latency_bins.record(self._bins)
        return self._series
