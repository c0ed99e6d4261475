import heapq
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from loadlab.generators import wrk2
from loadlab.generators.measurement import Lateness, Measurement, SentShape
from loadlab.model import Arrivals, Opened
from loadlab.report import words
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.validity import schedule_rules
from loadlab.results.validity.validity_evidence import LoadEvidence
from loadlab.stats import histograms, latency_bins
from tests.unit import builders
from tests.unit.builders import telemetry as host
from tests.unit.results.validity.judging import (
    CLOSED,
    CLOSED_LOOP,
    CONSTANT,
    GOOD,
    NONE,
    OVERLOADED,
    codes,
    judged,
    per_second,
)


def sent(p99: float, *off: int) -> Measurement:
    """Return a load of 1,000/s that was sent with this inter-arrival error, µs."""
    seconds = [*off, 0, 0]
    shape = SentShape(7, (1.0, p99), seconds)
    return replace(GOOD, sent_shape=shape, per_second=per_second(len(seconds)))


def test_arrivals_that_were_not_sent_void() -> None:
    assert judged(sent(100.0, 10, -10)).valid
    (late,) = judged(sent(100.1)).reasons
    told = "shape: the p99 of the inter-arrival error was 100.1 µs, limit 100 µs"
    assert words.coded(late) == told
    (off,) = judged(sent(5.0, 11, 2, -11)).reasons
    assert off.facts["seconds_off"] == 2
    assert "; 2 seconds had too many requests or too few" in words.reason(off)


def test_a_mix_that_was_not_sent_voids() -> None:
    kept = sent(5.0)
    shape = replace(builders.present(kept.sent_shape), mix_off=3)
    (off,) = judged(replace(kept, sent_shape=shape)).reasons
    assert off.code == "shape"
    assert words.reason(off).endswith("; 3 blocks of the mix had other counts than the weights")


def test_bursts_are_as_far_apart_as_their_gaps() -> None:
    load = msgspec.structs.replace(CONSTANT, arrivals=Arrivals(burst=20))
    assert judged(sent(2000.0), load=load).valid
    assert not judged(sent(2001.0), load=load).valid


def test_a_full_server_saturates() -> None:
    found = judged(OVERLOADED, server=host(cpu_busy=0.95))
    assert found.valid
    assert found.findings[0].facts["resource"] == "cpu"
    assert codes(found.findings) == ["saturated", "unsent"]
    for word in ("250.0/s achieved", "1,000/s asked", "22500 of 30000", "0.95 busy"):
        assert word in words.reason(found.findings[0])


def test_an_idle_server_whose_answers_are_all_waited_for_saturates() -> None:
    found = judged(OVERLOADED, server=host(cpu_busy=0.05))
    assert found.valid
    assert found.findings[0].facts["resource"] == "connections"
    assert "64.0 of 64 connections" in words.reason(found.findings[0])


def test_requests_that_time_out_hold_their_connections() -> None:
    """30 answers of 2 s, 60 timeouts of 30 s: 64 connections for 30 s, all in use."""
    hung = replace(
        OVERLOADED, requests=90, responses=30, errors={**NONE, "timeout": 60}, rate_achieved=1.0,
        mean_service_us=2e6,
    )  # fmt: skip
    found = judged(hung, server=host(cpu_busy=0.05))
    assert codes(found.findings) == ["saturated", "unsent", "errors"]
    assert found.findings[0].facts["connections_used"] == pytest.approx(62)


def test_a_server_that_answers_nothing_is_the_limit() -> None:
    mute = (builders.ROOT / "tests/fixtures/wrk2/mute.txt").read_text()
    asked = builders.load(generator="wrk2", rate=1.0, connections=1, duration_s=10.0)
    found = judged(wrk2.measure(mute, asked, None), server=host(cpu_busy=0.05), load=asked)
    assert found.valid
    (saturated,) = (finding for finding in found.findings if finding.code == "saturated")
    assert saturated.facts["resource"] == "connections"


def test_idle_connections_while_requests_were_due_void() -> None:
    found = judged(replace(OVERLOADED, mean_service_us=0.89 * 64 / 250 * 1e6))
    assert codes(found.reasons) == ["rate_missed"]


@pytest.mark.parametrize(
    ("connections", "rate", "answers"), [(2048, 8200, 4500), (400, 1900, 140), (64, 1000, 900)]
)
@pytest.mark.parametrize("sender", [1.0, 0.6])
def test_short_loads_fill_their_connections_first(
    connections: int, rate: int, answers: int, sender: float
) -> None:
    """A server that answers one after another, asked for 3 s; or a generator that leaves 40 % of
    its connections idle."""
    free = [0.0] * int(sender * connections)
    server_free, held, sent = 0.0, 0.0, 0
    for due in np.arange(0, 3, 1 / rate):
        begun = max(float(due), heapq.heappop(free))
        if begun >= 3:
            break
        server_free = max(server_free, begun) + 1 / answers
        heapq.heappush(free, server_free)
        held, sent = held + server_free - begun, sent + 1
    measured = replace(
        OVERLOADED, requests=sent, responses=sent, ok=sent, scheduled=3 * rate,
        unsent=3 * rate - sent, duration_s=server_free, rate_achieved=sent / server_free,
        mean_service_us=held / sent * 1e6,
    )  # fmt: skip
    found = judged(
        measured,
        client=host(sockets={"established_max": connections}),
        load=builders.load(rate=float(rate), connections=connections, duration_s=3.0),
    )
    full = sender == 1.0
    assert codes(found.reasons) == ([] if full else ["rate_missed"])
    assert ("saturated" in codes(found.findings)) == full


def test_answers_still_in_the_pipe_are_no_missed_rate() -> None:
    """All was sent, but each answer takes 3 s: the answers a second are fewer than asked."""
    slow = replace(GOOD, rate_achieved=900.0, mean_service_us=3e6)
    assert judged(slow, client=host(sockets={"established_max": 3000})).valid


def recorded(late: int = 0, unsent: int = 0, **changes: Any) -> Measurement:
    """Return a measurement whose requests are recorded, with these that the generator made late."""
    return replace(GOOD, lateness=Lateness(late, unsent, 0, hidden=False), **changes)


@pytest.mark.parametrize(
    ("late", "withheld"), [(1, []), (2, ["p99_99"]), (15, ["p99_99"]), (16, ["p99_9", "p99_99"])]
)
def test_percentiles_that_the_generator_may_have_made_are_told(
    late: int, withheld: list[str]
) -> None:
    findings = judged(recorded(late)).findings
    assert [finding.facts["percentiles"] for finding in findings] == ([withheld] * bool(withheld))
    if withheld:
        assert words.reason(findings[0]) == (
            f"the generator delayed {late} of 30,000 requests by more than 5 ms and 10 % of the "
            "latency without the delay, to the median or above; all of them were sent; "
            f"{' and '.join(withheld).replace('_', '.')} withheld"
        )


def test_unsent_requests_are_the_servers_where_the_generator_was_not_late() -> None:
    """Whatever the server's CPU says."""
    found = judged(recorded(unsent=22_500), server=host(cpu_busy=0.1))
    assert "saturated" not in codes(found.findings)
    over = replace(OVERLOADED, mean_service_us=1.0, lateness=Lateness(0, 0, 0, hidden=False))
    found = judged(over, server=host(cpu_busy=0.1))
    assert (found.valid, codes(found.findings)) == (True, ["saturated", "unsent"])
    assert found.findings[0].facts["resource"] == "connections"


def test_full_server_does_not_excuse_a_late_generator() -> None:
    late = recorded(late=22_500, unsent=22_500, requests=7_500)
    found = judged(replace(late, unsent=22_500), server=host(cpu_busy=1.0))
    assert codes(found.reasons) == ["generator_late"]
    assert words.reason(found.reasons[0]).endswith(
        "22,500 of them were never sent; 75 % of all, limit 0.50 %"
    )


def test_requests_that_hide_the_generators_lateness_are_told() -> None:
    failed = {**NONE, "timeout": 100}
    hidden = replace(GOOD, responses=29_900, errors=failed, lateness=Lateness(0, 0, 0, True))
    (finding, *_) = judged(hidden).findings
    told = "late_hidden: 100 requests without an answer, 64 connections: "
    assert words.coded(finding).startswith(told)


def by_second(*waits_ms: float) -> Measurement:
    """Return a measurement whose requests of each second waited so long."""
    each = [latency_bins.counted(np.full(1000, int(1000 * wait))) for wait in waits_ms]
    series = per_second(len(waits_ms), latency_bins=latency_bins.record(each))
    return replace(GOOD, per_second=series)


def test_requests_that_come_faster_than_they_are_answered_are_told() -> None:
    """All are sent and come back right, for there are connections enough; the last come late."""
    found = judged(by_second(50, 155, 248, 352, 449))
    assert (found.valid, codes(found.findings)) == (True, ["backlog"])
    (finding,) = found.findings
    # The bins of a second's latencies have a width.
    assert finding.value == pytest.approx(0.1, rel=0.15)
    assert words.coded(finding).endswith("about 53 ms in its first second and 408 ms in its last")


@pytest.mark.parametrize(
    "waits_ms",
    [(60,) * 5, (60, 63, 58, 64, 61), (400, 30, 30, 31, 30), (1, 1, 1, 300, 1), (1, 300)],
)
def test_waits_that_are_long_or_differ_are_no_backlog(waits_ms: tuple[float, ...]) -> None:
    assert judged(by_second(*waits_ms)).findings == []


def test_latency_that_follows_a_ramp_is_no_backlog() -> None:
    growing = by_second(10, 60, 110, 160, 210)
    assert codes(judged(growing).findings) == ["backlog"]
    ramp = msgspec.structs.replace(CONSTANT, arrivals=Arrivals(ramp=[(0, 100), (1, 1900)]))
    assert judged(growing, load=ramp).findings == []


def test_connections_at_their_limit_are_told() -> None:
    load = msgspec.structs.replace(CONSTANT, connections=200, on_demand=True)
    below = replace(GOOD, opened=Opened(count=230, most=199, waited=0))
    assert judged(below, load=load).findings == []
    at_limit = replace(below, opened=Opened(count=230, most=200, waited=31))
    (finding,) = judged(at_limit, load=load).findings
    assert words.coded(finding) == (
        "connections_limit: 31 requests found all 200 connections that may be open busy, and "
        "waited for one"
    )


def test_the_pacers_last_ticks_are_not_called_unsent() -> None:
    assert judged(replace(GOOD, requests=29_998, unsent=2)).findings == []


@pytest.mark.parametrize(("mean_us", "told"), [(1890.0, True), (1920.0, False), (2101.0, True)])
def test_littles_law_is_checked_in_a_closed_loop(mean_us: float, told: bool) -> None:
    found = judged(replace(CLOSED, mean_service_us=mean_us), load=CLOSED_LOOP)
    assert codes(found.findings) == ["littles_law"] * told
    assert found.valid


def test_full_server_does_not_excuse_idle_connections() -> None:
    """A generator that stops 0.3 s of each second leaves a server nearly full, whose queue is
    filled in the rest."""
    stopping = replace(OVERLOADED, rate_achieved=712.0, unsent=8640, mean_service_us=60_000.0)
    found = judged(stopping, server=host(cpu_busy=0.93))
    assert codes(found.reasons) == ["rate_missed"]
    each = builders.load(rate=1000.0, connections=64, duration_s=30.0, keepalive=False)
    found = judged(stopping, server=host(cpu_busy=0.93), load=each)
    assert (found.valid, found.findings[0].code) == (True, "saturated")


def test_cell_says_what_the_latencies_of_a_closed_loop_leave_out() -> None:
    slow = replace(CLOSED, mean_service_us=1500.0)
    (finding,) = judged(slow, load=msgspec.structs.replace(CLOSED_LOOP, keepalive=False)).findings
    assert words.reason(finding) == (
        "64.0 requests under way on average by count, 48.0 by rate times mean latency, 25 % apart, "
        "limit 5 %: the latencies leave out the opening of a connection for each"
    )
    bursts = msgspec.structs.replace(CLOSED_LOOP, burst_every_s=2.0)
    assert judged(slow, load=bursts).findings == []


@pytest.mark.parametrize(("censored_s", "told"), [(1.5, False), (1.7, True)])
def test_cell_says_what_the_latencies_of_a_rate_leave_out(censored_s: float, told: bool) -> None:
    """30,000 answers of 1 ms are 30 s."""
    failing = replace(GOOD, responses=29_998)
    waits = histograms.from_values(np.array([1_000_000 * censored_s]).astype(int))
    requests = DueRequests(failing, waits, builders.thresholds())
    evidence = LoadEvidence(requests, builders.cell(), host())
    found = [*schedule_rules.littles_law(evidence)]
    assert codes(found) == ["littles_law"] * told
    if told:
        assert "leave out 2 requests without an answer" in words.reason(found[0])
