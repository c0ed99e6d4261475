"""What a generator made itself, where it reports its part: S1 a percentile, S6 behind failures."""

from dataclasses import replace

import numpy as np
import pytest

from loadlab.generators.measurement import Lateness, Measurement
from loadlab.model import OwnPart, Stops
from loadlab.report import words
from loadlab.results.repetitions import latencies_due
from loadlab.stats import histograms
from tests.unit.results.validity.judging import GOOD, NONE, codes, judged


def measurement(latency_us: list[int], ideal_us: list[int], **changes: object) -> Measurement:
    """A load whose answers had these latencies, and the ideal ones."""
    exact = histograms.count_values(np.array(latency_us))
    histogram = histograms.from_counts(*exact)
    return replace(
        GOOD,
        generator="metronome",
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        ideal=histograms.from_values(np.array(ideal_us)),
        lateness=Lateness(0, 0, 0, hidden=False),
        stops=Stops(total_s=0.0, longest_s=0.0, causes={}),
        **changes,  # type: ignore[arg-type]
    )


def tail(usual_us: int, slow_us: int) -> list[int]:
    """10,000 latencies, of which 2 % are slow."""
    return [usual_us] * 9_800 + [slow_us] * 200


def test_a_percentile_is_withheld_that_the_generator_made() -> None:
    found = judged(measurement(tail(1000, 30_000), tail(1000, 1000)))
    assert found.valid
    (finding,) = [one for one in found.findings if one.code == "own_part"]
    assert finding.facts["percentiles"] == ["p99", "p99_9", "p99_99"]
    assert "p99 30.00 ms, of which generator 29.00 ms, limit 3.00 ms" in words.reason(finding)


def test_a_part_that_does_not_matter_is_nothing() -> None:
    # 19 µs of 40, and 5 % of 10 ms.
    for told, ideal in ((40, 21), (10_000, 9_500)):
        found = judged(measurement([told] * 1000, [ideal] * 1000))
        assert found.valid
        assert "own_part" not in codes(found.findings)


LONG_STOP = Stops(total_s=1.0, longest_s=0.5, causes={"outside": 1.0})
# S7: 0.3 s of each second, before a server that is busy in the rest.
SHORT_STOPS = Stops(total_s=9.0, longest_s=0.05, causes={"other_thread": 9.0})


@pytest.mark.parametrize(
    ("told", "ideal", "stops", "failed", "code", "said"),
    [
        (640, 60, None, 0, "own_median", "of which generator 580 µs"),
        # Failures do not hide a generator that stopped.
        *((1000, 1000, LONG_STOP, failed, "generator_stopped",
           "1,000 ms by the hypervisor, or a signal") for failed in (0, 64, 9_000)),
        (1000, 1000, SHORT_STOPS, 0, "generator_stops", "30.0 % of the load, limit 10 %"),
    ],
)  # fmt: skip
def test_a_load_of_the_generators_making_is_void(
    told: int, ideal: int, stops: Stops | None, failed: int, code: str, said: str
) -> None:
    load = measurement([told] * 1000, [ideal] * 1000, errors={**NONE, "read": failed})
    found = judged(replace(load, stops=stops))
    assert codes(found.reasons) == [code]
    assert said in words.reason(found.reasons[0])


def test_a_lower_bound_has_no_part() -> None:
    exact = histograms.count_values(np.array([1000] * 100))
    histogram = histograms.from_counts(*exact)
    censored = histograms.from_values(np.array([5_000_000] * 100))
    latency = latencies_due.over_due(histograms.summary(histogram, exact), histogram, censored, [])
    own = latencies_due.own_part(latency, histogram, censored)
    assert own == OwnPart(p50=0, p75=None, p90=None, p95=None, p99=None, p99_9=None, p99_99=None)
