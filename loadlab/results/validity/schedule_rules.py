"""Rules about the schedule of a load: whether the generator kept it, or why not.

loadlab/reasons/validity_reasons.py has the words of the reasons.
"""

from collections.abc import Iterator

# scipy imports scipy.stats, which takes two seconds, at its first use.
import numpy as np
import scipy
from msgspec.structs import replace

from loadlab.generators.measurement import Measurement
from loadlab.model import Facts, Load, Reason, Shape
from loadlab.reasons.row import over
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions.latencies_due import exceeding, withheld
from loadlab.results.validity import disturbance
from loadlab.results.validity.validity_evidence import ClientRule, LoadEvidence
from loadlab.stats import latency_bins

# Growth is a slope with an error, which needs so many seconds.
_SECONDS_MIN = 3
_CHANCE_MAX = 0.01


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


def generator_stopped(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator stood still for too long, once or in all."""
    stops, thresholds = evidence.measurement.stops, evidence.thresholds
    if stops is None:
        return
    part = stops.total_s / evidence.measurement.duration_s
    facts: Facts = {"total_s": stops.total_s, "longest_s": stops.longest_s, **stops.causes}
    longest = list(over("generator_stopped", stops.longest_s, thresholds.stop_max_s, **facts))
    yield from longest or over("generator_stops", part, thresholds.stops_max, **facts)


def shape(measurement: Measurement, thresholds: Thresholds) -> Shape | None:
    """Return how the arrivals of the schedule were kept; None where it is not reported."""
    sent, series = measurement.sent_shape, measurement.per_second
    if sent is None or series is None:
        return None
    p50, p99 = sent.gap_error_us
    seconds = zip(sent.off_by_second, series.scheduled, strict=True)
    return Shape(
        seed=sent.seed,
        gap_error_p50_us=p50,
        gap_error_p99_us=p99,
        seconds_off=sum(
            abs(off) > max(thresholds.second_off_max * scheduled, thresholds.second_off_least)
            for off, scheduled in seconds
        ),
        mix_off=sent.mix_off,
    )


def shape_lost(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator did not send the arrivals that it was asked for."""
    load, thresholds = evidence.cell.load, evidence.thresholds
    sent = shape(evidence.measurement, thresholds)
    if sent is None or not load.rate:
        return
    at_once = (load.arrivals.burst if load.arrivals else None) or 1
    limit = max(thresholds.gap_error_max_us, thresholds.gap_error_max * 1e6 * at_once / load.rate)
    if sent.gap_error_p99_us > limit or sent.seconds_off or sent.mix_off:
        yield Reason(
            code="shape",
            value=sent.gap_error_p99_us,
            limit=limit,
            facts={"seconds_off": sent.seconds_off, "mix_off": sent.mix_off or 0},
        )


def own_median(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where too much of the median is the generator's own."""
    for reason in _own(evidence):
        if reason.facts["percentile"] == "p50":
            yield replace(reason, code="own_median")


def own_part(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where percentiles are withheld as too much of them is the generator's own."""
    parts = [reason for reason in _own(evidence) if reason.facts["percentile"] != "p50"]
    if parts:
        names = [str(part.facts["percentile"]) for part in parts]
        yield replace(parts[0], facts={**parts[0].facts, "percentiles": names})


def _own(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield the generator's part of each percentile of which it made too much, µs, as a reason."""
    requests, thresholds = evidence.requests, evidence.thresholds
    for name in exceeding(requests.whole_us, requests.own_us, thresholds):
        us: float = getattr(requests.whole_us, name)
        yield Reason(
            code="own_part",
            value=getattr(requests.own_us, name),
            limit=max(thresholds.own_fraction_max * us, thresholds.own_least_us),
            facts={"latency_us": us, "percentile": name},
        )


def generator_late(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator made so many requests later that the p99 may be its own.

    Each request is compared with an ideal generator, see generators/attribution.py. Whatever the
    server does, an ideal generator adds nothing.
    """
    late = _late(evidence)
    if late is not None:
        yield from over("generator_late", late, evidence.thresholds.late_max, **_lateness(evidence))


def late_tail(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where higher percentiles are withheld as they may be the generator's own."""
    late = _late(evidence)
    if late is None or late > evidence.thresholds.late_max:
        return
    if names := withheld(late, evidence.thresholds.late_max):
        yield Reason(
            code="late_tail", value=late, facts={**_lateness(evidence), "percentiles": names}
        )


def _late(evidence: LoadEvidence) -> float | None:
    lateness, scheduled = evidence.measurement.lateness, evidence.measurement.scheduled
    if lateness is None or lateness.hidden or not scheduled:
        return None
    return lateness.late / scheduled


def _lateness(evidence: LoadEvidence) -> Facts:
    lateness = evidence.measurement.lateness
    assert lateness is not None
    return {
        "late": lateness.late,
        "unsent": lateness.unsent,
        "scheduled": evidence.measurement.scheduled,
        "least_s": evidence.thresholds.late_least_s,
        "least_fraction": evidence.thresholds.late_least_fraction,
    }


def late_hidden(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where failed requests hide how late the generator was."""
    measurement = evidence.measurement
    if measurement.lateness is not None and measurement.lateness.hidden:
        failed = measurement.requests - measurement.responses
        yield Reason(code="late_hidden", value=failed, limit=evidence.cell.load.connections)


def _missed_schedule(evidence: LoadEvidence) -> Reason | None:
    """Return a reason where the schedule was not kept: saturated, or else rate_missed.

    Where each request is recorded, what an ideal generator would not have sent either waited for
    the server, and the rest is judged by generator_late. Otherwise:

    The server was the limit if every connection of the generator waited for an answer, whether the
    server computed or waited itself: by Little's law answers/s times mean service time is then
    about the number of connections, less while they fill up and at the end. Without any answer (of
    wrk2: after its calibration) each connection waited for one all the time, or sent its request
    again. Otherwise connections were idle while requests were due: the generator did not keep up,
    and the repetition says nothing about the server, however busy that was. Only where the
    connections in use are not known, as each request opens its own, a full server is the limit.
    The schedule counts as kept by what was sent: requests unanswered at the deadline and errors do
    not count against it.
    """
    measurement, load, thresholds = evidence.measurement, evidence.cell.load, evidence.thresholds
    if not measurement.scheduled or measurement.unsent is None:
        return None
    # Not by `requests`, which for wrk2 are attempts: several may belong to one place in the
    # schedule.
    lateness = measurement.lateness
    recorded = lateness is not None and not lateness.hidden
    unsent = measurement.unsent - (lateness.unsent + lateness.left_out if lateness else 0)
    sent = (measurement.scheduled - unsent) / measurement.scheduled
    if sent >= thresholds.sent_min:
        return None
    usable = usable_connections(measurement, load)
    if measurement.histogram.total_count:
        used = concurrency(measurement, evidence.errors.timeout, thresholds.timeout_s)
    else:
        used = usable
    waiting = used >= thresholds.connections_busy_min * usable
    full = disturbance.server_full(evidence)
    unknown = measurement.mean_service_us is None or load.keepalive is False
    resource = None
    if not recorded and full and (waiting or unknown):
        resource = "cpu"
    elif recorded or waiting:
        resource = "connections"
    return Reason(
        code="rate_missed" if resource is None else "saturated",
        value=sent,
        limit=thresholds.sent_min,
        facts={
            "rate": load.rate,
            "rate_achieved": measurement.rate_achieved,
            "scheduled": measurement.scheduled,
            "unsent": unsent,
            "server_cpu_busy": evidence.server.cpu_busy,
            "connections": load.connections,
            "connections_used": used,
            "connections_usable": usable,
            **({} if resource is None else {"resource": resource}),
        },
    )


def rate_missed(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator alone did not keep the schedule."""
    missed = _missed_schedule(evidence) if evidence.measurement.lateness is None else None
    if missed is not None and missed.code == "rate_missed":
        yield missed


def saturated(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where the server was the limit."""
    missed = _missed_schedule(evidence)
    if missed is not None and missed.code == "saturated":
        yield missed


def unsent(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where more requests were due and not sent than a pacer's last ticks."""
    unsent = evidence.measurement.unsent
    if unsent and unsent > (evidence.cell.load.rate or 0.0) * evidence.thresholds.send_delay_tail_s:
        yield Reason(
            code="unsent", value=unsent, facts={"scheduled": evidence.measurement.scheduled}
        )


def connections_limit(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where requests waited, as no more connections could be opened on demand."""
    measurement, limit = evidence.measurement, evidence.cell.load.connections
    opened = measurement.opened
    waited = opened.waited + (measurement.unsent or 0) if opened else 0
    if opened and waited and opened.most >= limit:
        yield Reason(code="connections_limit", value=waited, limit=limit)


def backlog(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where requests came faster than they were answered, though all were sent.

    What waits at the server then grows, and with it the latency, in proportion to the time. The
    growth must be larger than that of a load that only fluctuates (p at most 0.01).
    """
    series, limit = evidence.measurement.per_second, evidence.thresholds.backlog_growth_max
    load = evidence.cell.load
    if load.mode != "constant" or series is None or series.latency_bins is None:
        return
    # On a ramp, in a log and of sessions, which begin with their visits, latency follows the rate.
    if load.replay or load.session or (load.arrivals and load.arrivals.ramp):
        return
    counts = latency_bins.table(series.latency_bins)
    edges = np.array(series.latency_bins.edges_us)
    middles = np.sqrt(np.append(edges[:1], edges) * np.append(edges, edges[-1:]))
    (seconds,) = np.nonzero(counts.sum(axis=1))
    if len(seconds) < _SECONDS_MIN or _missed_schedule(evidence) is not None:
        return
    waits_us = counts[seconds] @ middles / counts[seconds].sum(axis=1)
    growth, _ = np.polyfit(seconds, waits_us / 1e6, 1)
    # Before the import of scipy.stats, which takes a second between two measurements.
    if growth <= limit:
        return
    line = scipy.stats.linregress(seconds, waits_us / 1e6, alternative="greater")
    if line.pvalue <= _CHANCE_MAX:
        facts: Facts = {"first_us": float(waits_us[0]), "last_us": float(waits_us[-1])}
        yield Reason(code="backlog", value=float(line.slope), limit=limit, facts=facts)


def send_delay(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where the generator sent its requests too long after their time."""
    delay = (evidence.measurement.send_delay_us or {}).get("p99")
    yield from over("send_delay", delay or 0.0, evidence.thresholds.send_delay_p99_max_us)


def littles_law(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where the latencies leave out much of the time that requests were under way.

    By count a closed loop has a request under way on each connection; the last one of each is in no
    latency. In lanes it has them in its slices only, and the generator checks itself. At a constant
    rate those without an answer waited as well.
    """
    load, measurement, thresholds = evidence.cell.load, evidence.measurement, evidence.thresholds
    if not measurement.responses:
        return
    unended = 0.0
    if load.mode == "closed" and load.burst_every_s is None and load.lanes is None:
        counted = float(load.connections)
        by_latency = concurrency(measurement, evidence.errors.timeout, thresholds.timeout_s)
        unended = load.connections / measurement.responses
    elif load.mode == "constant":
        answered_s = (measurement.latency_us["mean"] or 0.0) * measurement.responses / 1e6
        by_latency = answered_s / measurement.duration_s
        counted = by_latency + evidence.requests.waits_s / measurement.duration_s
    else:
        return
    apart, limit = by_latency / counted - 1, thresholds.littles_law_max
    if not -limit - unended <= apart <= limit:
        yield Reason(
            code="littles_law",
            value=abs(apart),
            limit=limit,
            facts={
                "counted": counted,
                "by_latency": by_latency,
                "unanswered": measurement.requests
                - measurement.responses
                + (measurement.unsent or 0),
                "opens": load.keepalive is False,
            },
        )


# Their reasons void a repetition.
VOIDING: tuple[ClientRule, ...] = (
    generator_stopped,
    shape_lost,
    own_median,
    generator_late,
    rate_missed,
)
