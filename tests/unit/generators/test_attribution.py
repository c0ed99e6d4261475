"""Attribution over a simulated queue: what the server does is never the generator's fault."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given

from loadlab.generators.attribution import Schedule, latest_turns, spare_turns
from loadlab.generators.measurement import GeneratorError
from loadlab.results.repetitions import response_time
from tests import simulated
from tests.simulated import Server, capacity, constant, hanging, judged, offer, stalled
from tests.simulation import properties
from tests.unit import builders
from tests.unit.builders import present

SERVERS: dict[str, Server] = {
    "hangs for the last half second": stalled(29.5, 30.5),
    "hangs in the middle": stalled(14, 16),
    "hangs from the start": stalled(0, 3),
    "answers nothing": lambda number, start: (40.0, 0),
}


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_stall_of_the_server_is_not_the_generators(server: Server) -> None:
    found = judged(offer(200, 32, 30, server))
    assert (found.reasons, found.late) == ([], 0)


@pytest.mark.parametrize("part", [0.02, 0.25, 0.5, 0.75, 0.9, 0.97])
def test_collapse_of_the_server_is_not_the_generators(part: float) -> None:
    found = judged(offer(200, 32, 30, capacity(250, 30 * part, 0.5)))
    assert (found.reasons, found.late) == ([], 0)
    delay = present(found.measurement.send_delay_us)
    assert (delay["max"] or 0) <= 1
    if part < 0.9:
        assert "saturated" in found.findings


@given(properties.ANY_SERVER)
def test_ideal_generator_is_never_late_whatever_the_server_does(case: properties.Case) -> None:
    properties.ideal_generator(case)


# It goes on in time for four last requests, 0.497 % of all; the other 63 are never sent.
UNTIL_JUST_BEFORE_THE_END = properties.Case(
    rate=134, connections=4, duration_s=6, mean_s=0.002, stall=(1 - 2**-53, 0.5)
)


@given(properties.GENERATOR_STALLS)
@example(UNTIL_JUST_BEFORE_THE_END)
def test_ideal_server_hides_no_stall_of_the_generator(case: properties.Case) -> None:
    properties.ideal_server(case)


def test_stall_of_the_generator_at_the_end_counts_what_it_did_not_send() -> None:
    found = judged(offer(1000, 64, 10, constant(0.001), [(9.7, 11)]))
    lateness = present(found.measurement.lateness)
    assert lateness.unsent == pytest.approx(290, abs=2)
    assert lateness.left_out == pytest.approx(10, abs=1)
    assert found.reasons == ["generator_late"]


def test_latency_counts_from_the_schedule() -> None:
    found = judged(offer(1000, 64, 60, constant(0.002), [(20, 20.55)]))
    assert found.measurement.latency_us["p99_9"] == pytest.approx(490_000, rel=0.02)
    assert found.reasons == ["generator_late"]


def opened(connection_s: float, offered: simulated.Offered) -> simulated.Offered:
    """The load where each of the first requests opens a connection, one after the other."""
    rows, ready = [], 0.0
    for number, (issued, start, end, status) in enumerate(offered.rows):
        begin = max(start, ready)
        if number < offered.connections:
            ready = begin + connection_s
        rows.append((issued, begin, begin + end - start, status))
    return replace(offered, rows=rows)


def test_latencies_leave_out_the_opening_of_the_connections_and_counts_do_not() -> None:
    offered = opened(0.0002, offer(10_000, 400, 3, constant(0.001)))
    found = judged(offered)
    assert (found.reasons, found.late) == ([], 0)
    measured = found.measurement
    assert measured.responses == measured.scheduled == 30_000
    assert int(measured.histogram.total_count) == 29_000
    assert measured.latency_us["max"] == pytest.approx(1000, abs=2)
    assert (present(measured.per_second).max_us[0] or 0) > 30_000
    # What still delays a request after it is the generator's.
    assert judged(opened(0.0004, offered)).reasons == ["generator_late"]


def test_opening_is_told_and_objectives_count_it() -> None:
    """The server hangs for the first 0.25 s of 5 s, while 1,024 connections are opened."""
    offered = offer(4000, 1024, 5, hanging(constant(0.001), 0, 0.25))
    found = judged(offered)
    assert found.latency.p99 == pytest.approx(1000, abs=10)
    (finding,) = (finding for finding in found.validity.findings if finding.code == "opening")
    assert finding.value == 1024
    assert finding.facts["max_us"] == pytest.approx(251_000, rel=0.01)
    waits = present(response_time.summarise(found.measurement.waited, 4000, builders.thresholds()))
    assert waits.requests == 20_000
    # Of 1,000 requests that waited for 250 ms to none, the slowest 200 are 1 %.
    assert waits.p99_us == pytest.approx(201_000, rel=0.02)


def test_late_start_before_a_queue_of_seconds_changes_no_percentile_from_the_median() -> None:
    late = [(0.0, 0.03)]
    found = judged(offer(1000, 64, 6, capacity(700), late))
    undisturbed = judged(offer(1000, 64, 6, capacity(700)))
    assert (found.reasons, found.late) == ([], 0)
    for name in ("p50", "p99"):
        told, true = found.measurement.latency_us[name], undisturbed.measurement.latency_us[name]
        assert told == pytest.approx(true, rel=0.05)
    # Of fast answers, the same late start is above the limit.
    assert judged(offer(1000, 64, 1, constant(0.001), late)).reasons == ["generator_late"]


def test_percentiles_that_the_generator_may_have_made_are_withheld() -> None:
    found = judged(offer(1000, 64, 30, constant(0.002), [(20, 20.1)]))
    assert (found.reasons, found.findings) == ([], ["late_tail"])
    assert found.latency.p99 == pytest.approx(2000, rel=0.01)
    assert (found.latency.p99_9, found.latency.p99_99) == (None, None)


def test_failed_requests_leave_the_turn_of_the_others_known() -> None:
    offered = offer(100, 200, 10, lambda n, s: (0.002, 0 if n % 100 == 7 else 200))
    found = judged(offered)
    assert found.measurement.latency_us["max"] == 2000
    assert "late_hidden" not in found.findings


def test_requests_that_may_hold_every_connection_hide_who_was_late() -> None:
    found = judged(offer(100, 5, 10, lambda n, s: (0.002, 0 if n % 100 == 7 else 200)))
    assert (found.reasons, "late_hidden" in found.findings) == ([], True)
    assert found.measurement.send_delay_us is None


def test_request_issued_before_its_turn_is_refused() -> None:
    with pytest.raises(GeneratorError, match=r"request 1 was issued .* before its turn at 50/s"):
        spare_turns(np.array([0.0, 0.01, 0.02]), 0, Schedule(50, 1, 4), 0)


def test_turn_is_the_latest_that_all_rows_allow() -> None:
    spare = spare_turns(np.array([0.0, 0.035, 0.04]), 0, Schedule(100, 1, 4), 2)
    assert spare.tolist() == [0, 2, 2]
    assert latest_turns(spare, 0, 1).tolist() == [0, 2, 3]


def test_server_that_hangs_at_the_end_shows_in_the_percentiles() -> None:
    found = judged(offer(1000, 64, 30, stalled(29.7, 30.3, 0.004)))
    assert found.reasons == []
    assert found.measurement.unsent == 240
    assert found.latency.censored == 240
    assert (found.latency.p99 or 0) > 200_000
    assert found.latency.at_least == ["p99_9", "p99_99", "max"]


def test_server_that_answers_nothing_is_a_result() -> None:
    found = judged(offer(20, 4, 6, simulated.stalled(0, 60, 1)))
    assert found.reasons == []
    none = judged(offer(20, 4, 6, lambda number, start: (30.0, 0)))
    assert (none.reasons, none.measurement.goodput, none.latency.censored) == ([], 0, 120)
    assert none.latency.at_least == ["p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max"]
    assert (none.latency.p99 or 0) >= 6e6
