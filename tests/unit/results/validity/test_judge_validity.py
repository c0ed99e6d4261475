from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadlab.generators.measurement import Lateness
from loadlab.kinds import troubleshooting
from loadlab.model import HostTelemetry, Reason, Validity
from loadlab.reasons import all_reasons, validity_reasons
from loadlab.reasons.row import ReasonRow
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.report import words
from loadlab.results.validity import judge_validity
from loadlab.results.validity.validity_evidence import ClientEvidence
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.builders import telemetry as host
from tests.unit.results.validity.judging import (
    CLOSED,
    CLOSED_LOOP,
    GOOD,
    NONE,
    batch,
    codes,
    judged,
)

ROOT = Path(__file__).parents[4]


NO_ANSWER: dict[str, Any] = {
    "responses": 0, "ok": 0, "goodput": 0.0, "errors": {**NONE, "timeout": 30_000},
}  # fmt: skip


def sending(rx: float = 0, tx: float = 0) -> HostTelemetry:
    return host(network={"rx_bits_per_second": rx, "tx_bits_per_second": tx})


def late(requests: int) -> Lateness:
    return Lateness(requests, 0, 0, hidden=False)


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
        ("link_down", {"client": host(link_losses=1), "server": host(link_losses=1)}),
        ("swapping", {"client": host(swap_pages=1)}),
        ("telemetry_gap", {"server": host(samples=23)}),
        ("connections", {"client": host(sockets={"established_max": 63})}),
        ("link", {"client": sending(rx=8.1e8)}),
        ("link", {"client": sending(tx=8.1e8)}),
        ("short", {"measurement": replace(GOOD, duration_s=28.4)}),
        ("nothing_sent", {"measurement": replace(GOOD, requests=0, responses=0)}),
        ("generator_late", {"measurement": replace(GOOD, lateness=late(151))}),
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
        {"client": sending(rx=8e8, tx=8e8)},
        {"server": host(tcp={"listen_overflows": 9}, link_losses=0)},
        # A stack that needs more memory than its server has is a result.
        {"server": host(oom_kills=2)},
        {"measurement": replace(GOOD, lateness=late(150))},
        {"measurement": replace(GOOD, lateness=Lateness(0, 0, 0, hidden=True))},
        # oha opens a connection when it has a request for it.
        {
            "measurement": replace(GOOD, lateness=late(0)),
            "client": host(sockets={"established_max": 3}),
        },
        # Nothing answered is a result.
        {"measurement": replace(GOOD, **NO_ANSWER)},
        {"measurement": replace(GOOD, duration_s=28.5)},
    ],
)
def test_the_limit_itself_does_not_void(changes: dict[str, Any]) -> None:
    assert judged(**changes).reasons == []


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
        *("ticks", "uncalibrated", "send_delay", "unsent", "aborted", "errors", "errors")
    ]
    assert validity_reasons.FINDINGS.keys() > judge_validity.COUNTED
    assert words.coded(found.findings[5]) == "errors: status_5xx 7 of 30000 requests"


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
        ("link", {"client": sending(rx=8.1e8)}),
        ("generator_failed", {"exit_code": 124}),
    ],
)
def test_what_disturbs_a_batch_voids_it(code: str, hosts: dict[str, Any]) -> None:
    found = batch({}, **hosts)
    assert (found.valid, codes(found.reasons)) == (False, [code])


def test_words_name_the_client_that_a_reason_is_about() -> None:
    (steal,) = judged(server=host(cpu={"steal": 0.011})).reasons
    assert words.coded(steal) == "steal: 0.011 on server, limit 0.01"
    named = msgspec.structs.replace(steal, facts={**steal.facts, "client": "b"})
    assert words.coded(named) == "steal: b: 0.011 on server, limit 0.01"


@pytest.mark.parametrize("reason", [Reason(code="mood"), Reason(code="steal", value=0.5)])
def test_words_are_refused_for_a_reason_that_is_not_understood(reason: Reason) -> None:
    with pytest.raises(ResultError, match=f"reason '{reason.code}' has no words"):
        words.coded(reason)


def test_a_row_and_a_rule_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of CONTRIBUTING: it voids by its threshold, has words, and is on the page."""

    class Wider(Thresholds, frozen=True):
        example_max: float = 1.5

    row = ReasonRow(
        "{value} of {limit}", "Ask for less", meaning="An example.",
        thresholds=("example_max",), cause="hosts",
    )  # fmt: skip
    for module in (builders, troubleshooting):
        monkeypatch.setattr(module, "THRESHOLDS", Wider())
    monkeypatch.setitem(validity_reasons.VOID, "example", row)
    monkeypatch.setitem(all_reasons.TABLE, "example", row)

    def rule(client: ClientEvidence) -> list[Reason]:
        assert isinstance(client.thresholds, Wider)
        return [Reason(code="example", value=2, limit=client.thresholds.example_max)]

    monkeypatch.setattr(judge_validity, "VOIDING", (rule,))
    validity = judged()
    assert not validity.valid
    (reason,) = validity.reasons
    assert (words.coded(reason), words.remedy(reason)) == ("example: 2 of 1.5", "Ask for less")
    shown = "| example | An example. | `example_max` 1.5 | Ask for less |"
    assert shown in troubleshooting.page(ROOT)


def test_the_thresholds_are_in_their_ranges() -> None:
    values = msgspec.to_builtins(validity_reasons.THRESHOLDS)
    assert msgspec.convert(values, Thresholds) == validity_reasons.THRESHOLDS
