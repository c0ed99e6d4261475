"""Decide whether a repetition is valid. loadlab/report/words/validity.py has the words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from loadlab.analysis import disturbance
from loadlab.analysis.due import withheld
from loadlab.core.model import (
    Calibration,
    Cell,
    ErrorCounts,
    Facts,
    HostTelemetry,
    Load,
    PythonClient,
    Reason,
    Thresholds,
    Validity,
)
from loadlab.generators.measurement import Measurement


@dataclass(frozen=True)
class LoadEvidence:
    """What a load is judged by: of one client, or of several together.

    - cell: with the load offered
    - server: the server's telemetry during the load
    - nginx_requests: requests that nginx counted; None where it did not, or for one of several
      clients
    """

    measurement: Measurement
    cell: Cell
    server: HostTelemetry
    limits: Thresholds
    nginx_requests: int | None = None

    @property
    def errors(self) -> ErrorCounts:
        """Failed requests by class."""
        return msgspec.convert(self.measurement.errors, ErrorCounts)


@dataclass(frozen=True, kw_only=True)
class ClientEvidence(LoadEvidence):
    """What the load of one client is judged by.

    - client: its telemetry during the load
    - calibration: of that client and the server; None where there is none
    - exit_code: of its generator
    """

    client: HostTelemetry
    calibration: Calibration | None
    exit_code: int

    @property
    def hosts(self) -> dict[str, HostTelemetry]:
        """Telemetry of both hosts, by role."""
        return {"server": self.server, "client": self.client}


LoadRule: TypeAlias = Callable[[LoadEvidence], Iterator[Reason]]
ClientRule: TypeAlias = Callable[[ClientEvidence], Iterator[Reason]]


def judge(found: ClientEvidence) -> Validity:
    """Return the validity of one client's load.

    In a batch the client is the subject, so what it uses and its failures are findings.
    """
    against = [reason for rule in VOIDING for reason in rule(found)]
    # The subject of a study does not void its cells.
    expected = found.cell.expected_void or []
    reasons = [reason for reason in against if reason.code not in expected]
    findings = [
        *(reason for reason in against if reason.code in expected),
        *found.measurement.findings,
        *(reason for rule in (*FINDING, *COUNTING) for reason in rule(found)),
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
    limits = whole.limits
    reasons = _named({name: validity.reasons for name, validity in clients.items()})
    if measured := [calibration for calibration in calibrations if calibration is not None]:
        reasons += disturbance.full_link(telemetry, measured, limits)
    if spread_s > limits.start_spread_max_s:
        reasons.append(Reason(code="start_spread", value=spread_s, limit=limits.start_spread_max_s))
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
        for name, several in reasons.items()
        for reason in several
        if reason not in common
    ]
    return common + own


def _generator_failed(found: ClientEvidence) -> Iterator[Reason]:
    if found.exit_code != 0:
        yield Reason(code="generator_failed", value=found.exit_code, limit=0)


def _nothing_sent(found: ClientEvidence) -> Iterator[Reason]:
    if found.measurement.requests == 0:
        yield Reason(code="nothing_sent", value=0, limit=1)


def _short(found: ClientEvidence) -> Iterator[Reason]:
    span, asked = found.measurement.duration_s, found.cell.load.duration_s
    if asked is not None and span < found.limits.duration_min * asked:
        yield Reason(
            code="short",
            value=span / asked,
            limit=found.limits.duration_min,
            facts={"measured_s": span, "asked_s": asked},
        )


def _listen_overflows(found: ClientEvidence) -> Iterator[Reason]:
    overflows, limit = found.server.tcp.listen_overflows, found.limits.listen_overflows_max
    if overflows > limit:
        yield Reason(code="listen_overflows", value=overflows, limit=limit)


def _connections(found: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where fewer connections were open than a closed loop needs.

    A connection for a single request may close before it is counted. More than asked are fine, as
    the control connection is counted too. Where each request is recorded, nothing is inferred from
    connections: oha opens one when it has a request for it.
    """
    if found.measurement.lateness is not None:
        return
    cell, load = found.cell, found.cell.load
    kept = load.keepalive is not False and (cell.front != "none" or cell.upstream_keepalive)
    wanted = min(load.connections, found.measurement.requests)
    established = found.client.sockets.established_max
    if load.mode != "batch" and kept and established < wanted:
        yield Reason(code="connections", value=established, limit=wanted)


def concurrency(measurement: Measurement, timeouts: int, timeout_s: float) -> float:
    """Return the mean number of connections in use, as throughput times time held.

    This is Little's law (Little 1961, A Proof for the Queuing Formula: L = λW). The time held
    counts from the actual start, so it excludes waiting for a free connection. Each of the
    ``timeouts`` requests held its connection for ``timeout_s`` and is in no latency.
    """
    answered = measurement.rate_achieved * (measurement.mean_service_us or 0.0) / 1e6
    # wrk's late answers arrived, but after an unknown time, so they are left out.
    timed_out = timeouts if measurement.latency_from == "intended" else 0
    return answered + timed_out * timeout_s / measurement.duration_s


def usable_connections(measurement: Measurement, load: Load) -> float:
    """Return the highest mean number of connections that a load with a rate could have used.

    All connections are in use as soon and as long as possible. They fill up with the requests that
    are due and not answered, at the rate asked minus the rate achieved; after the deadline they
    empty as the last answers arrive. Both are taken as linear in time.
    """
    span = measurement.duration_s
    duration = min(load.duration_s or span, span)
    growth = (load.rate or 0.0) - measurement.rate_achieved
    filling = min(load.connections / growth, duration) if growth > 0 else duration
    return load.connections * (duration - filling / 2 + (span - duration) / 2) / span


def _generator_late(found: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator made so many requests later that the p99 may be its own.

    Each request is compared with an ideal generator, see generators/attribution.py. Whatever the
    server does, an ideal generator adds nothing.
    """
    late = _late(found)
    if late is not None and late > found.limits.late_max:
        yield Reason(
            code="generator_late", value=late, limit=found.limits.late_max, facts=_lateness(found)
        )


def _late_tail(found: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where higher percentiles are withheld as they may be the generator's own."""
    late = _late(found)
    if late is None or late > found.limits.late_max:
        return
    if names := withheld(late, found.limits.late_max):
        yield Reason(code="late_tail", value=late, facts={**_lateness(found), "percentiles": names})


def _late(found: LoadEvidence) -> float | None:
    lateness, scheduled = found.measurement.lateness, found.measurement.scheduled
    if lateness is None or lateness.hidden or not scheduled:
        return None
    return lateness.late / scheduled


def _lateness(found: LoadEvidence) -> Facts:
    lateness = found.measurement.lateness
    assert lateness is not None
    return {
        "late": lateness.late,
        "unsent": lateness.unsent,
        "scheduled": found.measurement.scheduled,
        "least_s": found.limits.late_least_s,
        "least_fraction": found.limits.late_least_fraction,
    }


def _late_hidden(found: LoadEvidence) -> Iterator[Reason]:
    measurement = found.measurement
    if measurement.lateness is not None and measurement.lateness.hidden:
        failed = measurement.requests - measurement.responses
        yield Reason(code="late_hidden", value=failed, limit=found.cell.load.connections)


def _counts_differ(found: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where nginx counted other requests than the generator.

    nginx counts a request once it has read its head. So it counts each that was answered, and may
    count one that failed. When the load begins and ends, each connection may have one request under
    way that only nginx counts. A background load passes nginx too.
    """
    counted, measurement = found.nginx_requests, found.measurement
    if counted is None or found.cell.load.background_endpoint:
        return
    off = max(measurement.responses - counted, counted - measurement.requests)
    if off > found.cell.load.connections:
        yield Reason(
            code="counts_differ",
            value=off,
            limit=found.cell.load.connections,
            facts={"nginx": counted, "generator": measurement.requests},
        )


def _missed_schedule(found: LoadEvidence) -> Reason | None:
    """Return a reason where the schedule was not kept: saturated, or else rate_missed.

    Where each request is recorded, what an ideal generator would not have sent either waited for
    the server, and the rest is judged by generator_late. Otherwise:

    The server was the limit if its CPU was full. It was also the limit if it only waits (a sleeping
    handler, a slow backend): then every connection of the generator waits for an answer, and by
    Little's law answers/s times mean service time is about the number of connections, less while
    they fill up and at the end. Otherwise connections were idle while requests were due: the
    generator did not keep up, and the repetition says nothing about the server. The schedule counts
    as kept by what was sent: requests unanswered at the deadline and errors do not count against
    it.
    """
    measurement, load, limits = found.measurement, found.cell.load, found.limits
    if not measurement.scheduled or measurement.unsent is None:
        return None
    # Not by `requests`, which for wrk2 are attempts: several may belong to one place in the
    # schedule.
    lateness = measurement.lateness
    recorded = lateness is not None and not lateness.hidden
    unsent = measurement.unsent - (lateness.unsent + lateness.left_out if lateness else 0)
    sent = (measurement.scheduled - unsent) / measurement.scheduled
    if sent >= limits.sent_min:
        return None
    used = concurrency(measurement, found.errors.timeout, limits.timeout_s)
    usable = usable_connections(measurement, load)
    resource = None
    if recorded:
        resource = "connections"
    elif disturbance.server_full(found):
        resource = "cpu"
    elif used >= limits.connections_busy_min * usable:
        resource = "connections"
    return Reason(
        code="rate_missed" if resource is None else "saturated",
        value=sent,
        limit=limits.sent_min,
        facts={
            "rate": load.rate,
            "rate_achieved": measurement.rate_achieved,
            "scheduled": measurement.scheduled,
            "unsent": unsent,
            "server_cpu_busy": found.server.cpu_busy,
            "connections": load.connections,
            "connections_used": used,
            "connections_usable": usable,
            **({} if resource is None else {"resource": resource}),
        },
    )


def _rate_missed(found: LoadEvidence) -> Iterator[Reason]:
    missed = _missed_schedule(found) if found.measurement.lateness is None else None
    if missed is not None and missed.code == "rate_missed":
        yield missed


def _saturated(found: LoadEvidence) -> Iterator[Reason]:
    missed = _missed_schedule(found)
    if missed is not None and missed.code == "saturated":
        yield missed


def _uncalibrated(found: ClientEvidence) -> Iterator[Reason]:
    if found.calibration is None:
        yield Reason(code="uncalibrated")


def _unsent(found: LoadEvidence) -> Iterator[Reason]:
    unsent = found.measurement.unsent
    if unsent and unsent > (found.cell.load.rate or 0.0) * found.limits.send_delay_tail_s:
        yield Reason(code="unsent", value=unsent, facts={"scheduled": found.measurement.scheduled})


def _aborted(found: LoadEvidence) -> Iterator[Reason]:
    if found.measurement.aborted:
        yield Reason(
            code="aborted",
            value=found.measurement.aborted,
            facts={"requests": found.measurement.requests},
        )


def _errors(found: LoadEvidence) -> Iterator[Reason]:
    for name, count in msgspec.structs.asdict(found.errors).items():
        if count:
            yield Reason(
                code="errors",
                value=count,
                facts={"class": name, "requests": found.measurement.requests},
            )


def _send_delay(found: LoadEvidence) -> Iterator[Reason]:
    delay = (found.measurement.send_delay_us or {}).get("p99")
    limit = found.limits.send_delay_p99_max_us
    if delay is not None and delay > limit:
        yield Reason(code="send_delay", value=delay, limit=limit)


def _littles_law(found: LoadEvidence) -> Iterator[Reason]:
    load, limits = found.cell.load, found.limits
    if load.mode != "closed":
        return
    used = concurrency(found.measurement, found.errors.timeout, limits.timeout_s)
    if used > limits.littles_law_max * load.connections:
        yield Reason(
            code="littles_law",
            value=used / load.connections,
            limit=limits.littles_law_max,
            facts={"concurrency": used, "connections": load.connections},
        )


def _client_limits(found: LoadEvidence) -> Iterator[Reason]:
    """Yield which of its own limits a Python client reached."""
    measurement, load = found.measurement, found.cell.load
    if measurement.client is None:
        return
    client = msgspec.convert(measurement.client, PythonClient)
    if load.open_files is not None and client.open_files < load.open_files:
        yield Reason(code="open_files_granted", value=client.open_files, limit=load.open_files)
    if count := client.failures.get("EMFILE"):
        yield Reason(
            code="open_files",
            value=count,
            facts={"requests": measurement.requests, "open_files": client.open_files},
        )
    if count := client.failures.get("EADDRNOTAVAIL"):
        first, last = client.local_ports
        yield Reason(
            code="local_ports",
            value=count,
            facts={
                "requests": measurement.requests,
                "first": first,
                "last": last,
                "reuse": load.reuse,
            },
        )


# Rules whose reasons void a repetition.
VOIDING: tuple[ClientRule, ...] = (
    _generator_failed,
    _nothing_sent,
    _short,
    disturbance.generator_cpu,
    disturbance.steal,
    disturbance.foreign_cpu,
    disturbance.clock_jump,
    disturbance.swapping,
    disturbance.telemetry_gap,
    _connections,
    disturbance.link,
    _generator_late,
    _rate_missed,
)
# Rules whose reasons are findings.
FINDING: tuple[ClientRule, ...] = (
    disturbance.both_full,
    disturbance.full_core,
    disturbance.retransmits,
    disturbance.packet_drops,
    disturbance.link_disturbed,
    _uncalibrated,
    _listen_overflows,
    _send_delay,
    _client_limits,
)
# The same of counts; for several clients they are applied to the whole load.
COUNTING: tuple[LoadRule, ...] = (
    _saturated,
    _late_tail,
    _late_hidden,
    _unsent,
    _aborted,
    _errors,
    _counts_differ,
    _littles_law,
)
COUNTED = frozenset({
    *("saturated", "late_tail", "late_hidden", "unsent", "aborted", "errors", "counts_differ"),
    "littles_law",
})  # fmt: skip
