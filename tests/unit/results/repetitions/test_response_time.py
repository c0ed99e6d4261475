import gzip
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.generators import oha, oha_database, wrk2
from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import Measurement, Waited
from loadlab.model import LaneTurns, ResponseTime
from loadlab.results.repetitions import response_time
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import load, present
from tests.unit.results.validity import judging

ROOT = Path(__file__).parents[4]
FIXTURES = ROOT / "tests" / "fixtures"
LIMITS = builders.thresholds()
TIMEOUT_S = LIMITS.timeout_s
LATE = oha_database.Limits(LIMITS.late_least_s, LIMITS.late_least_fraction, 0.01, 0.0)
TIMEOUT_US = TIMEOUT_S * 1e6


def summarise(waited: Waited | None, rate: float | None = 100.0) -> ResponseTime:
    return present(response_time.summarise(waited, rate, LIMITS))


def counted(*values: int) -> tuple[histograms.Integers, histograms.Integers]:
    return histograms.count_values(np.array(values, dtype=np.int64))


# Three of four came at once, 40 s before the end; spaced evenly they were 1 to 4 s before.
AT_ONCE = (np.array([2_000_000, 40_000_000]), np.array([1, 3]))


@pytest.mark.parametrize(
    ("waited", "rate", "sum_us", "requests", "failed"),
    [
        # Without losses it is the latency.
        (Waited(counted(*[1000] * 98, 3000, 3000)), 100.0, 98 * 1000 + 2 * 3000, 100, 0),
        # A refusal is no fast answer; one that came later than the timeout is not shortened.
        (Waited(counted(1000), counted(200, 40_000_000), unanswered=1), 100.0,
         1000 + 40e6 + 2 * TIMEOUT_US, 4, 3),
        # At 1 a second 50 never sent waited 1 to 50 s: 30 of them count as 30 s.
        (Waited(counted(1000), unsent=50), 1.0,
         1000 + 1e6 * sum(max(TIMEOUT_S, wait) for wait in range(1, 51)), 51, 50),
        # At 1000 a second the last 10 were due in the last 10 ms: the generator's own lateness.
        (Waited(counted(1000), unsent=10), 1000.0, 1000, 1, 0),
        (Waited(counted(1000), unsent=11), 1000.0, 1000 + TIMEOUT_US, 2, 1),
        # Of 300 answers 200 have a latency: of 30 never sent 20 stand beside them.
        (Waited(counted(*[1000] * 200), unsent=30, known_fraction=200 / 300), 10.0,
         200 * 1000 + 20 * TIMEOUT_US, 220, 20),
        # Of other arrivals the unsent have the waits of their own due times.
        (Waited(counted(1000), unsent=4, left_out=0, unsent_us=AT_ONCE), 1.0,
         1000 + TIMEOUT_US + 3 * 40e6, 5, 4),
    ],
)  # fmt: skip
def test_response_time_counts_every_request_that_was_due(
    waited: Waited, rate: float, sum_us: float, requests: int, failed: int
) -> None:
    found = summarise(waited, rate)
    assert found.mean_us == pytest.approx(sum_us / requests)
    assert (found.requests, found.failed) == (requests, failed)


def test_without_losses_it_has_the_percentiles_of_the_latency() -> None:
    found = summarise(Waited(counted(*[1000] * 98, 3000, 3000)))
    assert (found.p50_us, found.p99_us) == pytest.approx((1000, 3000), rel=1e-3)


def test_response_time_is_none_without_waits_rate_or_answers() -> None:
    assert response_time.summarise(None, 100.0, LIMITS) is None
    assert response_time.summarise(Waited(counted(1)), None, LIMITS) is None
    assert response_time.summarise(Waited(counted(), unsent=1), 100.0, LIMITS) is None


@given(
    st.lists(st.integers(1, 60_000_000), min_size=1, max_size=50),
    st.lists(st.integers(1, 60_000_000), max_size=20),
    st.integers(0, 20),
    st.integers(0, 400),
)
@settings(max_examples=60)
def test_losing_an_answer_never_makes_it_better(
    right: list[int], wrong: list[int], unanswered: int, unsent: int
) -> None:
    """And every request that was due is in it once."""
    slowest = max(right)
    waited = Waited(counted(*right), counted(*wrong), unanswered, unsent)
    found = summarise(waited, rate=1000.0)
    assert found.requests == len(right) + found.failed
    assert found.failed == len(wrong) + unanswered + max(0, unsent - 10)
    right.remove(slowest)
    if slowest < TIMEOUT_US:
        worse = summarise(Waited(counted(*right), counted(*wrong), unanswered + 1, unsent), 1000.0)
        assert worse.mean_us > found.mean_us
        assert (worse.p99_us or 0) >= (found.p99_us or 0)


def test_repetitions_merge_by_adding_histograms_and_refuse_what_few_requests_carry() -> None:
    first = summarise(Waited(counted(*[1000] * 400)))
    second = summarise(Waited(counted(*[2000] * 590), unanswered=10))
    found = present(response_time.merge([first, second]))
    assert (found.requests, found.failed) == (1000, 10)
    assert found.mean_us == pytest.approx((400 * 1000 + 590 * 2000 + 10 * TIMEOUT_US) / 1000)
    assert found.p99_us == pytest.approx(2000, rel=1e-3)
    assert present(response_time.merge([second])).p99_us is None
    assert response_time.merge([first, None]) is None
    assert response_time.merge([]) is None


def of_oha(name: str, tmp_path: Path, rate: float, duration_s: float) -> Measurement:
    database = tmp_path / "oha.sqlite"
    database.write_bytes(gzip.decompress((FIXTURES / f"oha/{name}.sqlite.gz").read_bytes()))
    schedule = Schedule(rate, duration_s, 64)
    said = oha.report((FIXTURES / f"oha/{name}.json").read_text(), schedule)
    reduction = oha_database.reduce(database, schedule, said.missing, LATE)
    again = msgspec.json.decode(msgspec.json.encode(reduction), type=oha_database.Reduction)
    assert again == reduction
    return oha.measure(said, reduction, 13)


@pytest.mark.parametrize("name", ["missing", "broken", "refused"])
def test_a_server_that_gives_none_right_is_at_the_timeout(name: str, tmp_path: Path) -> None:
    """However fast its 404, its 500 or its refusal came."""
    measured = of_oha(name, tmp_path, 100, 1)
    found = summarise(measured.waited, 100)
    assert found.mean_us == TIMEOUT_US
    assert found.failed == found.requests == measured.requests


def test_a_flaky_server_by_each_of_its_requests(tmp_path: Path) -> None:
    measured = of_oha("flaky", tmp_path, 100, 3)
    found = summarise(measured.waited, 100)
    failed = sum(measured.errors.values()) + measured.aborted
    assert measured.errors["body"] > 0
    assert failed < found.failed + 1
    assert found.requests == measured.ok + found.failed
    assert found.mean_us > found.failed / found.requests * TIMEOUT_US


def test_a_saturated_server_is_worse_than_its_latencies_say(tmp_path: Path) -> None:
    """Three quarters of 2000 a second for 3 s were never sent, and are in no latency."""
    measured = of_oha("saturated", tmp_path, 2000, 3)
    found = summarise(measured.waited, 2000)
    # No connection was free when these were due.
    assert found.failed == present(measured.unsent) > 0.5 * found.requests
    assert found.mean_us > 5 * present(measured.latency_us["mean"])


def of_wrk2(name: str, **asked: float) -> Measurement:
    text = (FIXTURES / f"wrk2/{name}.txt").read_text()
    return wrk2.measure(text, load(**asked), None)


def test_wrk2_tells_it_but_not_of_refused_answers() -> None:
    measured = of_wrk2("normal", rate=2000, duration_s=60, connections=64)
    found = summarise(measured.waited, 2000)
    assert found.requests == measured.histogram.total_count < measured.responses
    assert found.failed == 0
    refused = of_wrk2("errors", rate=4, duration_s=30, connections=10)
    assert refused.errors["status_other"] > 0
    assert refused.waited is None


def test_wrk2s_unsent_count_in_proportion() -> None:
    measured = of_wrk2("saturated", rate=2000, duration_s=30, connections=100)
    found = summarise(measured.waited, 2000)
    known = measured.histogram.total_count
    assert found.requests == known + found.failed
    unsent = (present(measured.unsent) - 20) / measured.responses
    assert found.failed / known == pytest.approx(unsent, rel=0.01)


def test_lanes_are_compared_without_the_generators_own_part() -> None:
    """Of 2,000 answers the generator made each 100 µs later; one more request has no answer."""
    latencies = counted(*range(1000, 3000))
    measurement = replace(
        judging.GOOD,
        waited=Waited(latencies, unanswered=1),
        ideal=histograms.from_counts(latencies[0] - 100, latencies[1]),
    )
    rated = load(rate=100.0, lanes=LaneTurns())
    times = present(response_time.of_lane(measurement, rated, LIMITS))
    assert times.p50_us == pytest.approx(1900, abs=2)
    assert times.p99_us == pytest.approx(np.exp(np.log(np.arange(2851, 2896)).mean()), rel=1e-3)
    assert response_time.of_lane(measurement, load(rate=100.0), LIMITS) is None
