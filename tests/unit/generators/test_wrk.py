import json
import re
from pathlib import Path

import pytest

from loadlab.generators import wrk
from loadlab.generators.measurement import GeneratorError
from loadlab.results.repetitions import response_time
from loadlab.results.repetitions.latencies_due import over_due
from tests.unit import builders
from tests.unit.builders import present

FIXTURES = Path(__file__).parents[2] / "fixtures" / "wrk"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def report(name: str) -> dict[str, object]:
    line = text(name).splitlines()[-1]
    found: dict[str, object] = json.loads(line.removeprefix(wrk.MARKER))
    return found


def test_a_normal_run() -> None:
    found = wrk.measure(text("normal"), 8, 161)
    assert (found.requests, found.responses, found.ok) == (259191, 259191, 259191)
    assert found.duration_s == 2.100243
    assert found.goodput == found.rate_achieved == pytest.approx(123410.01, abs=0.01)
    assert (found.scheduled, found.unsent, found.send_delay_us) == (None, None, None)
    assert found.latency_from == "sent"
    assert found.findings == []


def test_invented_latencies_are_taken_out_again() -> None:
    printed = report("normal")["latency_us"]
    assert isinstance(printed, list)
    assert sum(count for _, count in printed) == 268197  # 9006 more than were answered
    found = wrk.measure(text("normal"), 8, None)
    assert found.histogram.total_count == found.responses == 259191
    # A closed loop without idle time: rate times latency is the number of connections.
    assert found.rate_achieved * present(found.mean_service_us) / 1e6 == pytest.approx(8, rel=0.1)


def test_the_correction_is_undone_exactly() -> None:
    """wrk's own: for n upwards from 2 e, data[n - e], data[n - 2e] … above e get data[n] more."""
    truth = {10: 50, 25: 4, 47: 2, 100: 1}
    connections, requests = 2, 57
    duration = 280  # µs; the interval is 280 // (57 // 2) = 10
    invented = dict(truth)
    for n in range(20, 101):
        m = n - 10
        while invented.get(n) and m > 10:
            invented[m] = invented.get(m, 0) + invented[n]
            m -= 10
    assert sum(invented.values()) > sum(truth.values())
    values, counts = wrk._undo_correction(
        wrk.Report(
            requests=requests,
            bytes=0,
            errors=wrk.Errors(connect=0, read=0, write=0, status=0, timeout=0),
            duration_us=duration,
            latency_us=sorted(invented.items()),
        ),
        connections,
    )
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == truth


def test_a_saturated_run() -> None:
    found = wrk.measure(text("saturated"), 16, None)
    assert found.rate_achieved == pytest.approx(500, rel=0.01)
    assert found.latency_us["p50"] == pytest.approx(32_000, rel=0.01)


def test_a_percentile_of_seconds_is_padded() -> None:
    seconds = re.sub(r"     99% .*", "     99%    1.74s ", text("normal"))
    assert "1.74s \n" in seconds
    assert wrk.measure(seconds, 8, 161).requests == 259191


def test_late_answers_are_timeouts_and_in_no_latency() -> None:
    found = wrk.measure(text("late"), 16, None)
    assert (found.errors["timeout"], found.errors["read"]) == (32, 172)
    assert (found.responses, found.histogram.total_count) == (591, 591 - 32)
    assert (found.ok, found.requests) == (591 - 32, 591 + 172)


def test_statuses_are_not_told_apart() -> None:
    found = wrk.measure(text("missing"), 4, None)
    assert found.errors["status_other"] == found.responses == 73571
    assert (found.ok, found.goodput) == (0, 0.0)


def test_another_length_is_a_finding() -> None:
    assert wrk.measure(text("normal"), 8, 162).findings == []
    (finding,) = wrk.measure(text("normal"), 8, 170).findings
    assert (finding.code, finding.limit) == ("body", 0.01)
    assert finding.facts == {"mean_bytes": pytest.approx(161, abs=0.05), "expected_bytes": 170}


def test_nothing_answered_is_a_result() -> None:
    """Each connection waited for its first answer until the end."""
    found = wrk.measure(text("mute"), 4, 13)
    assert (found.requests, found.responses, found.aborted, found.goodput) == (4, 0, 4, 0)
    load = builders.load(generator="wrk", mode="closed", rate=None, connections=4, duration_s=1.0)
    waits = response_time.censored(found, load, builders.thresholds())
    assert waits.total_count == 4
    assert waits.get_min_value() == pytest.approx(1e6, rel=1e-3)
    latency = over_due(found.latency_us, found.histogram, waits, [])
    assert latency.p50 == latency.max == pytest.approx(1e6, rel=1e-3)
    assert (latency.mean, latency.censored, len(latency.at_least)) == (None, 4, 8)


@pytest.mark.parametrize("kept", [0, 1, 5, 10, 14])
def test_truncated_text_is_refused(kept: int) -> None:
    lines = text("missing").splitlines()
    assert len(lines) == 15
    with pytest.raises(GeneratorError, match="truncated"):
        wrk.measure("\n".join(lines[:kept]), 4, None)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (text("normal")[-40:], "", "not understood"),
        ("259191 requests in", "259192 requests in", "printed"),
        ("requests in 2.10s", "requests in 2.20s", "2.20s"),
        ("8 connections", "9 connections", "printed"),
        ('"read":0', '"read":1', "printed"),
        ("Transfer/sec", "Something else\nTransfer/sec", "'Something else'"),
        ('"bytes":', '"bites":', "not understood"),
        ("[[", "[[3,7],[", "came in time"),
        ("[[", "[[-3,7],[", "not understood"),
        ("[[", "[[99999999999999999999,7],[", "not understood"),
        # Of a load with late answers.
        ("timeout 32", "timeout 31", "printed"),
    ],
)
def test_what_does_not_agree_is_refused(old: str, new: str, words: str) -> None:
    name, connections = ("normal", 8) if old in text("normal") else ("late", 16)
    changed = text(name).replace(old, new, 1)
    assert changed != text(name)
    with pytest.raises(GeneratorError, match=words):
        wrk.measure(changed, connections, None)
