"""Decide whether a repetition is valid. loadlab/reasons/validity_reasons.py has the words."""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from loadlab.model import Calibration, HostTelemetry, Reason, Validity
from loadlab.reasons.validity_reasons import VOID
from loadlab.results.validity import disturbance, request_rules, schedule_rules
from loadlab.results.validity.validity_evidence import (
    ClientEvidence,
    ClientRule,
    LoadEvidence,
    LoadRule,
)


def judge(client: ClientEvidence) -> Validity:
    """Return the validity of one client's load.

    In a batch the client is the subject, so what it uses and its failures are findings.
    """
    order = list(VOID)
    against = sorted(
        (reason for rule in VOIDING for reason in rule(client)),
        key=lambda reason: order.index(reason.code),
    )
    # The subject of a study does not void its cells.
    expected = client.cell.expected_void or []
    reasons = [reason for reason in against if reason.code not in expected]
    findings = [
        *(reason for reason in against if reason.code in expected),
        *client.measurement.findings,
        *(reason for rule in (*FINDING, *COUNTING) for reason in rule(client)),
    ]
    return Validity(valid=not reasons, reasons=reasons, findings=findings)


def judge_together(
    clients: Mapping[str, Validity],
    whole: LoadEvidence,
    telemetry: Sequence[HostTelemetry],
    calibrations: Sequence[Calibration | None],
    spread_s: float,
) -> Validity:
    """Return the validity of a load of several clients.

    It is void where one client's part is, where the clients together filled the server's link, or
    where they did not start together. ``clients``: name -> judge(). Each of its reasons gets the
    client's name, except one that all clients share, which appears once. ``whole``: all
    measurements merged, with the whole load. ``telemetry``, ``calibrations``: of each client.
    ``spread_s``: seconds between the first and the last start.
    """
    thresholds = whole.thresholds
    reasons = _named({name: validity.reasons for name, validity in clients.items()})
    if measured := [calibration for calibration in calibrations if calibration is not None]:
        reasons += disturbance.full_link(telemetry, measured, thresholds)
    if spread_s > thresholds.start_spread_max_s:
        reasons.append(
            Reason(code="start_spread", value=spread_s, limit=thresholds.start_spread_max_s)
        )
    # Counts are reported for the whole load. A missed rate voids, and the client's own validity
    # already says so.
    counted = [reason for rule in COUNTING for reason in rule(whole)]
    own = {
        name: [reason for reason in validity.findings if reason.code not in COUNTED]
        for name, validity in clients.items()
    }
    return Validity(valid=not reasons, reasons=reasons, findings=[*_named(own), *counted])


def _named(reasons: Mapping[str, Sequence[Reason]]) -> list[Reason]:
    first, *rest = reasons.values()
    common = [reason for reason in first if all(reason in other for other in rest)]
    own = [
        msgspec.structs.replace(reason, facts={**reason.facts, "client": name})
        for name, causes in reasons.items()
        for reason in causes
        if reason not in common
    ]
    return common + own


VOIDING: tuple[ClientRule, ...] = (
    *request_rules.VOIDING,
    *disturbance.VOIDING,
    *schedule_rules.VOIDING,
)

# Rules whose reasons are findings.
FINDING: tuple[ClientRule, ...] = (
    disturbance.both_full,
    partial(disturbance.swapping, role="server"),
    disturbance.killed,
    disturbance.full_core,
    disturbance.retransmits,
    disturbance.packet_drops,
    disturbance.link_disturbed,
    disturbance.disturbed_tail,
    disturbance.uncalibrated,
    request_rules.listen_overflows,
    schedule_rules.send_delay,
    request_rules.client_limits,
)

# The same of counts; for several clients they are applied to the whole load.
COUNTING: tuple[LoadRule, ...] = (
    schedule_rules.saturated,
    schedule_rules.connections_limit,
    schedule_rules.backlog,
    schedule_rules.own_part,
    schedule_rules.late_tail,
    schedule_rules.late_hidden,
    schedule_rules.unsent,
    request_rules.aborted,
    request_rules.errors,
    request_rules.counts_differ,
    schedule_rules.littles_law,
)

# Each of these has the name of its code.
COUNTED = frozenset(rule.__name__ for rule in COUNTING)
