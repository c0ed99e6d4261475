"""Limits outside of the stack: the instrument, somebody else, the link; and none at all."""

from __future__ import annotations

import math

from loadlab.results.limits import cpu_account
from loadlab.results.limits.limit_evidence import Check, Evidence, check, first
from loadlab.results.ranking import HELD_FROM
from loadlab.model import Reason, TcpConnections

# A generator that could not do more; a Python client's own limits.
_CLIENT = (
    *("generator_cpu", "generator_stopped", "generator_stops", "own_median", "generator_late"),
    "rate_missed",
)
_CLIENT_LIMITS = ("open_files", "local_ports")
SEGMENT = 1448  # bytes of an answer in one Ethernet frame
# A mean round trip so many times as long as the fastest request was spent in a queue.
_QUEUED = 3


def neighbour(found: Evidence) -> Check | None:
    """Look for processes that are not the lab's, and for other machines on the same hardware."""
    why = first(found.reasons("foreign_cpu", "steal"))
    if why is None:
        mean = found.server.foreign_cpu
        return None if mean is None else check("neighbour", False, mean)
    host = str(why.facts.get("host", "server"))
    mean = found.client.foreign_cpu if host == "client" else found.server.foreign_cpu
    worst = why.facts.get("worst")
    return check(
        "neighbour",
        True,
        mean,
        host=host,
        cause=why.code,
        worst=float(worst) if isinstance(worst, int | float) else None,
        wait_us=_wait_us(found),
    )


def _wait_us(found: Evidence) -> float | None:
    """Return how long a request's threads waited for a core of the server, µs; None if unknown."""
    waited = [
        one.run_queue_wait_s
        for name in found.shares
        if (one := found.service(name)) and one.run_queue_wait_s is not None
    ]
    return 1e6 * sum(waited) / found.rep.responses if waited and found.rep.responses else None


def client(found: Evidence) -> Check:
    """Look for a generator or a Python client that could not do more."""
    own = first(found.reasons(*_CLIENT_LIMITS))
    if own is not None:
        return _client(True, found, own)
    void = [one for one in found.rep.validity.reasons if one.code in _CLIENT]
    # A generator whose requests fail at once has nothing to wait for, and fills its core with them.
    refused = found.failed > (found.rep.requests or 0) / 2
    return _client(bool(void) and not refused, found, first(void))


def _client(hit: bool, found: Evidence, why: Reason | None) -> Check:
    failed = why.value if why is not None and why.code in _CLIENT_LIMITS else None
    return check(
        "client",
        hit,
        found.client.cpu_busy,
        cause=None if why is None else why.code,
        failed=failed if isinstance(failed, int) else None,
    )


def link(found: Evidence) -> Check | None:
    """Look for a link that was full, far, or lost packets."""
    why = first(found.reasons("link"))
    if why is not None:
        used = float(str(why.facts["bits_per_second"]))
        return check("link", True, float(str(why.value)), cause="full", bits_per_second=used)
    again = [one for one in found.reasons("retransmits") if one.facts["network"]]
    if again and not found.full:
        return check("link", True, float(str(again[0].value)), cause="lost")
    tcp = found.server.connections
    if tcp is None:
        return None
    rule, slow = found.rule, found.mean_us
    trips = _round_trips(found, tcp)
    part = min(1.0, trips * tcp.rtt_us / slow) if slow else 0.0
    far = part >= rule.limit_round_trip and tcp.rtt_us >= 1000 * rule.limit_far_ms
    fastest = found.rep.latency_us.min if found.rep.latency_us else None
    queued = fastest is not None and tcp.rtt_us >= _QUEUED * fastest
    return check(
        "link",
        far and not found.full,
        part,
        rule.limit_round_trip,
        cause="queue" if queued else "far",
        fastest_us=fastest if queued else None,
        trips=trips,
        rtt_us=tcp.rtt_us,
        least_rtt_us=tcp.least_rtt_us,
        window=tcp.window,
        retransmitted=tcp.retransmitted,
    )


def _round_trips(found: Evidence, tcp: TcpConnections) -> float:
    """Return the round trips of an answer: one, and those in which its window doubles until all of
    the answer is sent."""
    answers = found.rep.responses or 1
    segments = found.server.network.tx_bytes / answers / SEGMENT
    return 1 + math.log2(max(1.0, segments / max(tcp.window, 1.0)))


def none(found: Evidence) -> Check | None:
    """Look whether a constant rate was kept within the objective; None without a rate."""
    load, rep, objective = found.cell.load, found.rep, found.rule.curve_slo
    if load.mode != "constant" or not load.rate or rep.goodput is None or not rep.requests:
        return None
    kept = rep.goodput >= HELD_FROM * load.rate
    right = found.failed <= objective["errors"] * rep.requests
    limit = 1000 * objective["p99_ms"]
    return check(
        "none",
        kept and right and found.p99_us <= limit,
        found.p99_us,
        limit,
        busy=found.busy,
        rate=load.rate,
    )


def connections(found: Evidence) -> Check | None:
    """Look whether the load has too few connections to use the server up.

    At a constant rate all of them were in use while requests were due; in a closed loop the
    server's parts explain the time of a request.
    """
    load = found.cell.load
    if load.mode == "constant":
        saturated = first(found.reasons("saturated"))
        if saturated is None or saturated.facts["resource"] != "connections":
            return None
        used, usable = (
            float(str(saturated.facts[name])) for name in ("connections_used", "connections_usable")
        )
        return check(
            "connections",
            not found.full and not found.failed,
            used / usable,
            connections=load.connections,
            busy=found.busy,
            rate=load.rate,
        )
    if load.mode != "closed" or found.mean_us is None:
        return None
    explained = 1 - cpu_account.elsewhere_us(found) / found.mean_us if found.mean_us else 0.0
    return check(
        "connections",
        not found.full and not found.failed and explained >= found.rule.limit_explained,
        explained,
        found.rule.limit_explained,
        connections=load.connections,
        busy=found.busy,
    )
