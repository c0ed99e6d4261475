"""Limits of the load and its way to the server; none where a constant rate is kept."""

import math

from loadlab.model import TcpConnections
from loadlab.reasons.limit_reasons import THRESHOLDS
from loadlab.results.comparisons.ranking import held
from loadlab.results.limits.limit_evidence import Check, Evidence, LimitCheck, check, first
from loadlab.run import methods

# A generator that could not do more; a Python client's own limits.
_CLIENT = (
    *("generator_cpu", "generator_stopped", "generator_stops", "own_median", "generator_late"),
    "rate_missed",
)
_CLIENT_LIMITS = ("open_files", "local_ports")
SEGMENT = 1448  # bytes of an answer in one Ethernet frame
# A mean round trip, or a mean request, so many times as long as the fastest was spent in a queue.
_QUEUED = 3


def neighbour(evidence: Evidence) -> Check | None:
    """Look for processes that are not the lab's, and for other machines on the same hardware."""
    reason = first(evidence.reasons("foreign_cpu", "steal"))
    if reason is None:
        mean = evidence.server.foreign_cpu
        return None if mean is None else check("neighbour", False, mean)
    host = str(reason.facts.get("host", "server"))
    mean = evidence.client.foreign_cpu if host == "client" else evidence.server.foreign_cpu
    worst = reason.facts.get("worst")
    return check(
        "neighbour",
        True,
        mean,
        host=host,
        cause=reason.code,
        worst=float(worst) if isinstance(worst, int | float) else None,
        wait_us=_wait_us(evidence),
    )


def _wait_us(evidence: Evidence) -> float | None:
    """Return how long a request's threads waited for a core of the server, µs; None if unknown."""
    waited = [
        processes.run_queue_wait_s
        for name in evidence.shares
        if (processes := evidence.service(name)) and processes.run_queue_wait_s is not None
    ]
    return 1e6 * sum(waited) / evidence.rep.responses if waited and evidence.rep.responses else None


def client(evidence: Evidence) -> Check:
    """Look for a generator or a Python client that could not do more."""
    own = first(evidence.reasons(*_CLIENT_LIMITS))
    void = [reason for reason in evidence.rep.validity.reasons if reason.code in _CLIENT]
    # A generator whose requests fail at once has nothing to wait for, and fills its core with them.
    refused = evidence.failed > (evidence.rep.requests or 0) / 2
    cause = own or first(void)
    return check(
        "client",
        own is not None or (bool(void) and not refused),
        evidence.client.cpu_busy,
        cause=cause.code if cause else None,
        failed=own.value if own and isinstance(own.value, int) else None,
    )


def link(evidence: Evidence) -> Check | None:
    """Look for a link that was full, far, or lost packets."""
    reason = first(evidence.reasons("link"))
    if reason is not None:
        used = float(str(reason.facts["bits_per_second"]))
        return check("link", True, float(str(reason.value)), cause="full", bits_per_second=used)
    again = [cause for cause in evidence.reasons("retransmits") if cause.facts["network"]]
    if again and not evidence.full:
        return check("link", True, float(str(again[0].value)), cause="lost")
    tcp = evidence.server.connections
    if tcp is None:
        return None
    slow = evidence.mean_us
    trips = _round_trips(evidence, tcp)
    part = min(1.0, trips * tcp.rtt_us / slow) if slow else 0.0
    far = part >= THRESHOLDS.round_trip and tcp.rtt_us >= 1000 * THRESHOLDS.far_ms
    fastest = evidence.fastest_us
    queued = fastest is not None and tcp.rtt_us >= _QUEUED * fastest
    return check(
        "link",
        far and not evidence.full,
        part,
        THRESHOLDS.round_trip,
        cause="queue" if queued else "far",
        fastest_us=fastest if queued else None,
        trips=trips,
        rtt_us=tcp.rtt_us,
        least_rtt_us=tcp.least_rtt_us,
        window=tcp.window,
        retransmitted=tcp.retransmitted,
    )


def _round_trips(evidence: Evidence, tcp: TcpConnections) -> float:
    """Return the round trips of an answer: one, and those in which its window doubles until all of
    the answer is sent."""
    answers = evidence.rep.responses or 1
    segments = evidence.server.network.tx_bytes / answers / SEGMENT
    return 1 + math.log2(max(1.0, segments / max(tcp.window, 1.0)))


def none(evidence: Evidence) -> Check | None:
    """Look whether a constant rate was kept within the objective; None without a rate."""
    load, rep, objective = evidence.cell.load, evidence.rep, methods.objective()
    if load.mode != "constant" or not load.rate or rep.goodput is None or not rep.requests:
        return None
    limit = 1000 * objective["p99_ms"]
    return check(
        "none",
        held(rep) and evidence.p99_us is not None and evidence.p99_us <= limit,
        evidence.p99_us,
        limit,
        busy=evidence.busy,
        rate=load.rate,
        failed=evidence.failed,
        **({"speed": load.replay.speed} if load.replay else {}),
        **({"visits": True} if load.session else {}),
    )


def connections(evidence: Evidence) -> Check | None:
    """Look whether the load has too few connections to use the server up.

    At a constant rate all of them were in use while requests were due; in a closed loop the
    server's parts explain the time of a request.
    """
    load, fastest = evidence.cell.load, evidence.fastest_us
    # More connections would make the queue longer, and bring no more answers.
    queued = bool(fastest and evidence.mean_us and evidence.mean_us >= _QUEUED * fastest)
    if load.mode == "constant":
        saturated = first(evidence.reasons("saturated"))
        if saturated is None or saturated.facts["resource"] != "connections":
            return None
        used, usable = (
            float(str(saturated.facts[name])) for name in ("connections_used", "connections_usable")
        )
        return check(
            "connections",
            not evidence.full and not evidence.failed and not queued,
            used / usable,
            connections=load.connections,
            busy=evidence.busy,
            rate=load.rate,
        )
    if load.mode != "closed" or evidence.mean_us is None:
        return None
    explained = 1 - evidence.elsewhere_us / evidence.mean_us if evidence.mean_us else 0.0
    return check(
        "connections",
        not evidence.full and not evidence.failed and explained >= THRESHOLDS.explained,
        explained,
        THRESHOLDS.explained,
        connections=load.connections,
        busy=evidence.busy,
    )


RULES: tuple[LimitCheck, ...] = (neighbour, client, none, link, connections)
