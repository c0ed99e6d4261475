from __future__ import annotations

import ast
import heapq
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from loadlab.analysis.validity import ClientEvidence, judge
from loadlab.core.errors import ResultError
from loadlab.core.model import (
    Calibration,
    Cell,
    HostTelemetry,
    Load,
    Reason,
    Validity,
)
from loadlab.generators.measurement import ERROR_CLASSES, Lateness, Measurement
from loadlab.report import words
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import telemetry as host

ROOT = Path(__file__).parents[3]
HISTOGRAM = histograms.from_values(np.array([1000]))
NONE = dict.fromkeys(ERROR_CLASSES, 0)

GOOD = Measurement(
    generator="oha",
    requests=30_000,
    responses=30_000,
    ok=30_000,
    errors=NONE,
    aborted=0,
    scheduled=30_000,
    unsent=0,
    duration_s=30.0,
    rate_achieved=1000.0,
    goodput=1000.0,
    mean_service_us=2000.0,
    histogram=HISTOGRAM,
    latency_us=histograms.summary(HISTOGRAM),
    latency_from="intended",
    send_delay_us={"p99": 1500.0},
)
# A quarter of the schedule sent, because every one of the 64 connections waits for an answer.
OVERLOADED = replace(
    GOOD,
    requests=7_500,
    responses=7_500,
    ok=7_500,
    unsent=22_500,
    rate_achieved=250.0,
    goodput=250.0,
    mean_service_us=64 / 250 * 1e6,
)
CLOSED = replace(
    GOOD,
    generator="wrk",
    scheduled=None,
    unsent=None,
    send_delay_us=None,
    latency_from="sent",
    rate_achieved=32_000.0,
)
BATCH = replace(
    CLOSED,
    generator="python-async",
    requests=10_000,
    responses=1_015,
    ok=1_015,
    errors={**NONE, "connect": 8_985},
    duration_s=4.2,
    rate_achieved=240.0,
    goodput=240.0,
    client=builders.client(EMFILE=8_985),
)


SUMMARY: dict[str, Any] = histograms.summary(HISTOGRAM)


CONSTANT = builders.load(rate=1000.0, connections=64, duration_s=30.0)
CLOSED_LOOP = msgspec.structs.replace(CONSTANT, generator="wrk", mode="closed", rate=None)
BATCH_LOAD = builders.load(
    generator="python-async",
    mode="batch",
    rate=None,
    requests=10_000,
    connections=10_000,
    open_files=1024,
    reuse=True,
    duration_s=None,
    keepalive=None,
)


def judged(
    measurement: Measurement = GOOD,
    server: HostTelemetry | None = None,
    client: HostTelemetry | None = None,
    calibration: Calibration | None = builders.calibration_at(1e9),  # noqa: B008
    exit_code: int = 0,
    load: Load = CONSTANT,
    cell: Cell | None = None,
    nginx: int | None = None,
) -> Validity:
    return judge(
        ClientEvidence(
            measurement=measurement,
            cell=msgspec.structs.replace(cell or builders.cell(), load=load),
            server=server or host(),
            limits=builders.thresholds(),
            client=client or host(),
            calibration=calibration,
            exit_code=exit_code,
            nginx_requests=nginx,
        )
    )


def codes(reasons: list[Reason]) -> list[str]:
    return [reason.code for reason in reasons]


def test_nothing_to_say_of_a_good_one() -> None:
    assert judged() == Validity(valid=True, reasons=[], findings=[])
    assert judged(CLOSED, load=CLOSED_LOOP) == Validity(valid=True, reasons=[], findings=[])


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("generator_cpu", {"client": host(cpu_busy=0.91)}),
        ("steal", {"server": host(cpu={"steal": 0.011})}),
        ("steal", {"client": host(cpu={"steal": 0.011})}),
        ("clock_jump", {"client": host(clock_step_s=0.11)}),
        ("swapping", {"server": host(swap_pages=1)}),
        ("telemetry_gap", {"server": host(samples=23)}),
        ("connections", {"client": host(sockets={"established_max": 63})}),
        (
            "link",
            {"client": host(network={"rx_bits_per_second": 8.1e8, "tx_bits_per_second": 0})},
        ),
        (
            "link",
            {"client": host(network={"rx_bits_per_second": 0, "tx_bits_per_second": 8.1e8})},
        ),
        ("short", {"measurement": replace(GOOD, duration_s=28.4)}),
        ("nothing_sent", {"measurement": replace(GOOD, requests=0, responses=0)}),
        (
            "generator_late",
            {"measurement": replace(GOOD, lateness=Lateness(151, 0, 0, hidden=False))},
        ),
        ("generator_failed", {"exit_code": 1}),
    ],
)
def test_each_reason_voids_alone(code: str, changes: dict[str, Any]) -> None:
    found = judged(**changes)
    assert (found.valid, codes(found.reasons)) == (False, [code])


@pytest.mark.parametrize(
    "changes",
    [
        {"client": host(cpu_busy=0.90)},
        {"server": host(cpu={"steal": 0.01}, clock_step_s=0.1, samples=24)},
        {"client": host(sockets={"established_max": 64})},
        {"client": host(network={"rx_bits_per_second": 8e8, "tx_bits_per_second": 8e8})},
        {"server": host(tcp={"listen_overflows": 9})},
        {"measurement": replace(GOOD, lateness=Lateness(150, 0, 0, hidden=False))},
        {"measurement": replace(GOOD, lateness=Lateness(0, 0, 0, hidden=True))},
        # oha opens a connection when it has a request for it.
        {
            "measurement": replace(GOOD, lateness=Lateness(0, 0, 0, hidden=False)),
            "client": host(sockets={"established_max": 3}),
        },
        # Nothing answered is a result.
        {
            "measurement": replace(
                GOOD, responses=0, ok=0, goodput=0.0, errors={**NONE, "timeout": 30_000}
            )
        },
        {"measurement": replace(GOOD, duration_s=28.5)},
    ],
)
def test_the_limit_itself_does_not_void(changes: dict[str, Any]) -> None:
    assert judged(**changes).reasons == []


def test_waiting_for_the_last_answers_is_no_gap_in_the_telemetry() -> None:
    late = replace(GOOD, duration_s=55.0)
    assert judged(late, server=host(samples=31)).valid
    assert codes(judged(late, server=host(samples=23)).reasons) == ["telemetry_gap"]


def test_a_closed_loop_may_fill_the_client_where_the_server_is_full() -> None:
    found = judged(CLOSED, host(cpu_busy=0.9), host(cpu_busy=0.97), load=CLOSED_LOOP)
    assert found.valid
    (told,) = found.findings
    assert words.coded(told) == (
        "generator_cpu: client 0.97 busy, limit 0.9, server 0.90 busy, full from 0.9: both were "
        "full"
    )


def test_a_closed_loop_that_fills_the_client_alone_says_nothing_of_the_server() -> None:
    found = judged(CLOSED, host(cpu_busy=0.74), host(cpu_busy=0.94), load=CLOSED_LOOP)
    assert not found.valid
    assert [words.coded(reason) for reason in found.reasons] == [
        "generator_cpu: client 0.94 busy, limit 0.9, server 0.74 busy, full from 0.9: the "
        "generator was the limit"
    ]
    assert judged(CLOSED, host(cpu_busy=0.74), host(cpu_busy=0.9), load=CLOSED_LOOP).valid
    # The calibration is about what the client can do.
    cell = builders.cell(expected_void=["generator_cpu"])
    ceiling = judged(CLOSED, client=host(cpu_busy=1.0), load=CLOSED_LOOP, cell=cell)
    assert (ceiling.valid, codes(ceiling.findings)) == (True, ["generator_cpu"])


def test_fewer_requests_than_connections_need_fewer_connections() -> None:
    few = replace(GOOD, requests=40, responses=40, scheduled=40)
    assert judged(few, client=host(sockets={"established_max": 40})).valid


@pytest.mark.parametrize(
    ("cell", "load", "kept"),
    [
        ({}, {"keepalive": True}, True),
        ({}, {"keepalive": False}, False),
        ({"front": "none", "upstream_keepalive": True}, {}, True),
        # The application server closes the clients' own.
        ({"front": "none", "upstream_keepalive": False}, {}, False),
    ],
)
def test_connections_for_one_request_are_not_counted(
    cell: dict[str, Any], load: dict[str, Any], kept: bool
) -> None:
    found = judged(
        client=host(sockets={"established_max": 3}),
        load=msgspec.structs.replace(CONSTANT, **{"keepalive": None, **load}),
        cell=builders.cell(**cell),
    )
    assert codes(found.reasons) == (["connections"] if kept else [])


def test_a_full_server_saturates() -> None:
    found = judged(replace(OVERLOADED, mean_service_us=1.0), server=host(cpu_busy=0.95))
    assert found.valid
    assert codes(found.findings) == ["saturated", "unsent"]
    for word in ("250.0/s achieved", "1000/s asked", "22500 of 30000", "0.95 busy"):
        assert word in words.reason(found.findings[0])


def test_an_idle_server_whose_answers_are_all_waited_for_saturates() -> None:
    found = judged(OVERLOADED, server=host(cpu_busy=0.05))
    assert found.valid
    assert found.findings[0].facts["resource"] == "connections"
    assert "64.0 of 64 connections" in words.reason(found.findings[0])


def test_requests_that_time_out_hold_their_connections() -> None:
    """30 answers of 2 s, 60 timeouts of 30 s: 64 connections for 30 s, all in use."""
    hung = replace(
        OVERLOADED,
        requests=90,
        responses=30,
        errors={**NONE, "timeout": 60},
        rate_achieved=1.0,
        mean_service_us=2e6,
    )
    found = judged(hung, server=host(cpu_busy=0.05))
    assert codes(found.findings) == ["saturated", "unsent", "errors"]
    assert found.findings[0].facts["connections_used"] == pytest.approx(62)


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
        OVERLOADED,
        requests=sent,
        responses=sent,
        ok=sent,
        scheduled=3 * rate,
        unsent=3 * rate - sent,
        duration_s=server_free,
        rate_achieved=sent / server_free,
        mean_service_us=held / sent * 1e6,
    )
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


def test_findings_do_not_void() -> None:
    bad = replace(
        GOOD,
        errors={**NONE, "status_5xx": 7, "body": 2},
        aborted=3,
        unsent=3,
        send_delay_us={"p99": 10_001.0},
        findings=[Reason(code="ticks", value=1)],
    )
    found = judged(bad, calibration=None)
    assert found.valid
    assert codes(found.findings) == [
        "ticks",
        "uncalibrated",
        "send_delay",
        "unsent",
        "aborted",
        "errors",
        "errors",
    ]
    assert words.coded(found.findings[5]) == "errors: status_5xx 7 of 30000 requests"


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
            f"{late} of 30000 scheduled requests made later by the generator, by more than 0.005 s "
            "and 10% of the latency with an ideal one; 0 of them never sent; "
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
        "22500 of them never sent; 0.7500 of all, limit 0.005"
    )


def test_requests_that_hide_the_generators_lateness_are_told() -> None:
    hidden = replace(
        GOOD, responses=29_900, errors={**NONE, "timeout": 100}, lateness=Lateness(0, 0, 0, True)
    )
    (finding, *_) = judged(hidden).findings
    assert words.coded(finding).startswith(
        "late_hidden: 100 requests without an answer, 64 connections: "
    )


@pytest.mark.parametrize(
    ("nginx", "off"), [(30_064, None), (30_065, 65), (29_890, None), (29_826, None), (29_825, 65)]
)
def test_requests_that_nginx_and_the_generator_count_differently(
    nginx: int, off: int | None
) -> None:
    """Each connection may have one under way; 110 failed, whether or not nginx saw them."""
    measured = replace(GOOD, responses=29_890, errors={**NONE, "timeout": 110})
    found = judged(measured, nginx=nginx)
    assert found.valid
    differ = [one for one in found.findings if one.code == "counts_differ"]
    assert [one.value for one in differ] == [off] * (off is not None)


def test_the_pacers_last_ticks_are_not_called_unsent() -> None:
    assert judged(replace(GOOD, requests=29_998, unsent=2)).findings == []


def test_littles_law_is_checked_in_a_closed_loop() -> None:
    found = judged(replace(CLOSED, mean_service_us=2101.0), load=CLOSED_LOOP)
    assert codes(found.findings) == ["littles_law"]
    assert found.valid


def batch(failures: dict[str, int], load: dict[str, Any] | None = None, **hosts: Any) -> Validity:
    measurement = replace(BATCH, client=builders.client(**failures))
    return judged(measurement, load=msgspec.structs.replace(BATCH_LOAD, **(load or {})), **hosts)


def test_a_batch_may_fill_its_client_and_fail() -> None:
    """Few connections, a full CPU and failures are what was to be found out."""
    found = batch(
        {"EMFILE": 8_985}, client=host(cpu_busy=1.0, sockets={"established_max": 1017}, samples=4)
    )
    assert (found.valid, codes(found.findings)) == (True, ["open_files", "errors"])


@pytest.mark.parametrize(
    ("code", "hosts"),
    [
        ("steal", {"client": host(cpu={"steal": 0.011})}),
        ("clock_jump", {"server": host(clock_step_s=0.11)}),
        ("swapping", {"client": host(swap_pages=1)}),
        ("telemetry_gap", {"client": host(samples=3)}),
        (
            "link",
            {"client": host(network={"rx_bits_per_second": 8.1e8, "tx_bits_per_second": 0})},
        ),
        ("generator_failed", {"exit_code": 124}),
    ],
)
def test_what_disturbs_a_batch_voids_it(code: str, hosts: dict[str, Any]) -> None:
    found = batch({}, **hosts)
    assert (found.valid, codes(found.reasons)) == (False, [code])


def test_open_files_name_the_limit_and_the_remedy() -> None:
    (finding,) = batch({"EMFILE": 8_985}).findings[:-1]
    text = words.reason(finding)
    for part in ("8,985 of 10,000 requests", "EMFILE", "1,024", "-e open_files=", "ulimit -n"):
        assert part in text


def test_fewer_open_files_than_asked_are_told() -> None:
    (finding,) = batch({}, {"open_files": 20_000}).findings[:-1]
    assert finding.code == "open_files_granted"
    assert words.reason(finding).startswith("1,024 granted of 20,000 asked")


@pytest.mark.parametrize(
    ("reuse", "remedy", "other"),
    [(False, "-e python_keepalive=true", "fewer"), (True, "Have fewer under way", "TIME-WAIT")],
)
def test_local_ports_name_the_limit_and_the_remedy(reuse: bool, remedy: str, other: str) -> None:
    (finding,) = batch({"EADDRNOTAVAIL": 7_100}, {"reuse": reuse}).findings[:-1]
    text = words.reason(finding)
    for part in ("7,100 of 10,000", "28,232, 32768 to 60999", "ip_local_port_range", remedy):
        assert part in text
    assert other not in text


def returned() -> set[str]:
    """The codes in the source of the packages that judge a repetition."""
    found = set()
    judging = ("analysis/validity.py", "analysis/disturbance.py", "analysis/result.py")
    for package in (*judging, "generators/*.py"):
        for path in (ROOT / "loadlab").glob(package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason":
                    (code,) = (word.value for word in node.keywords if word.arg == "code")
                    found |= {
                        part.value
                        for part in ast.walk(code)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    }
    return found


def test_every_code_of_a_repetition_has_words() -> None:
    assert returned() == set(words.validity.TABLE)


def test_words_name_the_client_that_a_reason_is_about() -> None:
    (steal,) = judged(server=host(cpu={"steal": 0.011})).reasons
    assert words.coded(steal) == "steal: 0.011 on server, limit 0.01"
    named = msgspec.structs.replace(steal, facts={**steal.facts, "client": "b"})
    assert words.coded(named) == "steal: b: 0.011 on server, limit 0.01"


@pytest.mark.parametrize("reason", [Reason(code="mood"), Reason(code="steal", value=0.5)])
def test_words_are_refused_for_a_reason_that_is_not_understood(reason: Reason) -> None:
    with pytest.raises(ResultError, match=f"reason '{reason.code}' has no words"):
        words.coded(reason)
