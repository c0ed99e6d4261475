"""Rules about the hosts of a load: whether something other than the stack decided the figures.

loadlab/reasons/validity_reasons.py has the words of the reasons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from loadlab.model import Calibration, Facts, HostTelemetry, Iperf3Direction, Reason
from loadlab.reasons.row import over
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions.latencies_due import withheld
from loadlab.results.validity.validity_evidence import ClientEvidence, ClientRule, LoadEvidence
from loadlab.stats import percentiles
from loadlab.telemetry import counters
from loadlab.telemetry.counters import Counters

# Linux sends a segment again after 200 ms at the earliest (TCP_RTO_MIN), plus the round trip.
RTO_US = 200_000
RTO_TO_US = 300_000
# Part of the highest traffic of any second from which iperf3 was running.
TRAFFIC_MIN = 0.1


class Tail(NamedTuple):
    """The host on which others had a core for the largest part of the load in disturbed seconds;
    that part; and the percentiles that are withheld for it."""

    host: str
    time: float
    withheld: list[str]


def marked(host: HostTelemetry, thresholds: Thresholds) -> HostTelemetry:
    """Return the telemetry with each second marked in which foreign CPU or steal was too high."""
    series = host.per_second
    if series is None:
        return host
    foreign = series.foreign_cpu or [0.0] * len(series.t)
    disturbed = [
        used * host.cores > thresholds.foreign_cpu_disturbing
        or stolen > thresholds.steal_disturbing
        for used, stolen in zip(foreign, series.cpu_steal, strict=True)
    ]
    return replace(host, per_second=replace(series, disturbed=disturbed))


def generator_cpu(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where the client's CPU was full, so that it did not keep a schedule.

    A closed loop may fill the client's CPU if the server's is full too, or if most requests fail at
    once: otherwise the measurement shows the client's limit.
    """
    mode = client.cell.load.mode
    if mode == "constant" or (mode == "closed" and not _server_limits(client)):
        yield from _full_client(client)


def both_full(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where a closed loop filled the client, and the server was the limit."""
    if client.cell.load.mode == "closed" and _server_limits(client):
        yield from _full_client(client)


def _server_limits(client: ClientEvidence) -> bool:
    return server_full(client) or _most_failed(client)


def _most_failed(client: ClientEvidence) -> bool:
    return 2 * client.measurement.ok < client.measurement.requests


def server_full(evidence: LoadEvidence) -> bool:
    """Return whether the server's CPU was full."""
    return evidence.server.cpu_busy >= evidence.thresholds.server_cpu_full


def _full_client(client_evidence: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where the lab filled the client on average, or in too many of the seconds.

    Where other programs did, foreign_cpu says so.
    """
    thresholds, client = client_evidence.thresholds, client_evidence.client
    limit, series = thresholds.generator_cpu_max, client.per_second
    own = client.cpu_busy - (client.foreign_cpu or 0.0)
    seconds = list(series.cpu_busy) if series else []
    if series and series.foreign_cpu:
        seconds = [
            busy - foreign for busy, foreign in zip(seconds, series.foreign_cpu, strict=True)
        ]
    facts: Facts = {}
    if client_evidence.cell.load.mode == "closed":
        facts = {
            "server_cpu_busy": client_evidence.server.cpu_busy,
            "server_cpu_full": thresholds.server_cpu_full,
            "failing": _most_failed(client_evidence),
        }
    if own > limit:
        yield Reason(code="generator_cpu", value=own, limit=limit, facts=facts)
    else:
        yield from _in_seconds(
            "generator_cpu", seconds, limit, thresholds.generator_cpu_seconds_max, facts
        )


def steal(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each host whose hypervisor took too much, on average or by the second."""
    thresholds = client.thresholds
    for role, host in client.hosts.items():
        seconds = host.per_second.cpu_steal if host.per_second else []
        mean = list(over("steal", host.cpu.steal, thresholds.steal_max, host=role))
        yield from mean or _stolen(role, seconds, host.cores, thresholds)


def _stolen(
    role: str, per_second: Sequence[float], cores: int, thresholds: Thresholds
) -> Iterator[Reason]:
    """Yield a reason where the hypervisor took too much in too many seconds, or so much in a few
    that the p99 is of its making: a core that it took serves as little as one that others use.

    ``per_second``: fractions of the time of ``cores``.
    """
    # Of many cores, what every load may lose is spread over all of them.
    second_max = max(thresholds.foreign_cpu_heavy, thresholds.steal_max * cores)
    heavy = [(second_max, thresholds.foreign_cpu_heavy_time_max)]
    limit, seconds_max = thresholds.steal_disturbing, thresholds.steal_seconds_max
    yield from list(_taken("steal", role, per_second, cores, heavy)) or _in_seconds(
        "steal", per_second, limit, seconds_max, {"host": role}
    )


def _taken(
    code: str,
    role: str,
    per_second: Sequence[float],
    cores: int,
    limits: Sequence[tuple[float, float]],
    **facts: float,
) -> Iterator[Reason]:
    """Yield a reason where somebody had cores of a host for too much of the load.

    ``limits``: cores from which a second counts, and the part of the load that such seconds may
    have. A request is served by a core and not by the mean of all, so it counts in cores.
    """
    used = [fraction * cores for fraction in per_second]
    for second_max, time_max in limits:
        time = sum(own for own in used if own > second_max) / len(used) if used else 0.0
        if time > time_max:
            own: Facts = {"host": role, "second_max": second_max, **facts, "worst": max(used)}
            yield Reason(code=code, value=time, limit=time_max, facts=own)
            return


def _in_seconds(
    code: str, per_second: Sequence[float], limit: float, fraction_max: float, facts: Facts
) -> Iterator[Reason]:
    """Yield a reason where too large a fraction of the seconds was above the limit."""
    above = [value for value in per_second if value > limit]
    seconds = len(above) / max(len(per_second), 1)
    if seconds > fraction_max:
        by_second: Facts = {"seconds": seconds, "seconds_max": fraction_max}
        yield Reason(code=code, value=max(above), limit=limit, facts={**facts, **by_second})


def foreign_cpu(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each host on which others had a core for too much of the load.

    Where its clock was set forward, which voids too, the time in between has no idle core.
    """
    for role, host in client.hosts.items():
        if host.clock_step_s > client.thresholds.clock_step_max_s:
            continue
        seconds = host.per_second.foreign_cpu if host.per_second else None
        yield from _foreign(role, seconds or [], host.cores, client.thresholds)


def _foreign(
    role: str, per_second: Sequence[float], cores: int, thresholds: Thresholds
) -> Iterator[Reason]:
    """Yield a reason where others had a core for so long that the p99 may be of their making.

    ``per_second``: fractions of the time of ``cores``.
    """
    limits = [
        (thresholds.foreign_cpu_heavy, thresholds.foreign_cpu_heavy_time_max),
        (thresholds.foreign_cpu_disturbing, thresholds.foreign_cpu_time_max),
    ]
    mean = sum(per_second) / max(len(per_second), 1)
    yield from _taken("foreign_cpu", role, per_second, cores, limits, mean=mean)


def tail(hosts: Mapping[str, HostTelemetry], thresholds: Thresholds) -> Tail:
    """Return the percentiles that other programs may have made.

    Such a percentile leaves out a smaller part of the requests than the part of the load that other
    programs had. No percentile up to the p99 is among these: the repetition is void instead.
    """
    times = {role: _disturbed_time(host, thresholds) for role, host in hosts.items()}
    role = max(times, key=times.__getitem__)
    # The part of the requests that lie above the p99.
    return Tail(role, times[role], withheld(times[role], 0.01))


def _disturbed_time(host: HostTelemetry, thresholds: Thresholds) -> float:
    """Return for which part of the load others had a core in disturbed seconds."""
    series = host.per_second
    if series is None or not series.t:
        return 0.0
    foreign = [host.cores * used for used in series.foreign_cpu or []]
    taken = sum(cores for cores in foreign if cores > thresholds.foreign_cpu_disturbing)
    stolen = sum(used for used in series.cpu_steal if used > thresholds.steal_disturbing)
    return (taken + host.cores * stolen) / len(series.t)


def disturbed_tail(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where a percentile that the load supports is withheld, as others may have
    made it."""
    disturbed, answers = tail(client.hosts, client.thresholds), client.measurement.responses
    if names := [name for name in disturbed.withheld if percentiles.refusal(answers, name) is None]:
        facts: Facts = {"host": disturbed.host, "percentiles": names}
        yield Reason(code="disturbed_tail", value=disturbed.time, facts=facts)


def emulated(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where a host's processors are emulated: its speed is that of the emulation."""
    if client.emulated:
        yield Reason(code="emulated", facts={"hosts": list(client.emulated)})


def clock_jump(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each host whose clock stepped."""
    limit = client.thresholds.clock_step_max_s
    for role, host in client.hosts.items():
        yield from over("clock_jump", host.clock_step_s, limit, host=role)


def link_down(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where a host lost the link that carries the load."""
    yield from _on_hosts(
        "link_down", {role: host.link_losses for role, host in client.hosts.items()}
    )


def killed(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where the kernel of a host killed processes because memory was used up.

    Hosts that share a kernel share its count.
    """
    yield from _on_hosts("killed", {role: host.oom_kills for role, host in client.hosts.items()})


def _on_hosts(code: str, counts: Mapping[str, int | None]) -> Iterator[Reason]:
    """Yield a reason with the highest count of a host, where one has any, and these hosts."""
    some = {role: count for role, count in counts.items() if count}
    if some:
        yield Reason(code=code, value=max(some.values()), facts={"hosts": list(some)})


def swapping(client: ClientEvidence, role: str = "client") -> Iterator[Reason]:
    """Yield a reason where a host swapped: the server's stack may need more than its memory."""
    limit = client.thresholds.swap_pages_max
    yield from over("swapping", client.hosts[role].swap_pages, limit, host=role)


def allowance(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each counter by which the cloud held a host's packets back."""
    limit = client.thresholds.allowance_packets_max
    for role, host in client.hosts.items():
        for counter, packets in (host.allowances_exceeded or {}).items():
            yield from over("allowance", packets, limit, host=role, counter=counter)


def telemetry_gap(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each host that was scraped too rarely."""
    limit, duration_s = client.thresholds.samples_min, client.cell.load.duration_s
    # Telemetry covers the duration asked, not the wait for the last answers.
    span = client.measurement.duration_s
    watched = span if duration_s is None else min(span, duration_s)
    for role, host in client.hosts.items():
        if host.samples < limit * watched:
            yield Reason(
                code="telemetry_gap",
                value=host.samples / watched,
                limit=limit,
                facts={"host": role, "scrapes": host.samples, "duration_s": watched},
            )


def recording_gap(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each host whose recording does not cover the load: its scrapes do not show
    other programs' CPU time. A clock that was set voids already."""
    for role, host in client.hosts.items():
        if host.exact is False and host.clock_step_s <= client.thresholds.clock_step_max_s:
            yield Reason(code="recording_gap", facts={"host": role})


def link(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason for each direction in which the client came too close to the link's limit."""
    if client.calibration is not None:
        yield from full_link([client.client], [client.calibration], client.thresholds)


def full_link(
    clients: Sequence[HostTelemetry], calibrations: Sequence[Calibration], thresholds: Thresholds
) -> Iterator[Reason]:
    """Yield reasons where the clients together came too close to the limit of the server's link.

    The link's capacity is taken to be the highest that one client measured undisturbed; without
    one, it is unknown and the link is not judged. Several clients have their seconds at different
    moments, so they are judged by the mean alone.
    """
    measured = [calibration.iperf3 for calibration in calibrations if not calibration.link_reasons]
    if not measured:
        return
    for direction, name in (("client_to_server", "tx"), ("server_to_client", "rx")):
        capacity = max(getattr(iperf3, direction).bits_per_second for iperf3 in measured)
        used = sum(getattr(telemetry.network, f"{name}_bits_per_second") for telemetry in clients)
        facts: Facts = {
            "direction": direction,
            "bits_per_second": used,
            "iperf3_bits_per_second": capacity,
            "clients": len(clients),
        }
        series = clients[0].per_second if len(clients) == 1 else None
        fractions = [bits / capacity for bits in getattr(series, f"{name}_bits")] if series else []
        if used > thresholds.link_max * capacity:
            yield Reason(code="link", value=used / capacity, limit=thresholds.link_max, facts=facts)
        else:
            yield from _in_seconds(
                "link", fractions, thresholds.link_max, thresholds.link_seconds_max, facts
            )


def uncalibrated(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where there is no calibration."""
    if client.calibration is None:
        yield Reason(code="uncalibrated")


def link_disturbed(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where the link was not judged, because its calibration was disturbed."""
    if client.calibration is not None and client.calibration.link_reasons:
        codes = sorted({reason.code for reason in client.calibration.link_reasons})
        yield Reason(code="link_disturbed", facts={"codes": codes})


def full_core(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding for each host of several cores of which one was full and the others not, or
    one was full of softirq."""
    limit = client.thresholds.core_full
    for role, host in client.hosts.items():
        busiest, softirq = host.cpu_busiest_core, host.softirq_busiest_core
        if host.cores == 1 or busiest < limit:
            continue
        if host.cpu_busy < limit or softirq >= limit:
            yield Reason(
                code="full_core",
                value=busiest,
                limit=limit,
                facts={
                    "host": role,
                    "cores": host.cores,
                    "cpu_busy": host.cpu_busy,
                    "softirq": softirq,
                },
            )


def retransmits(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding for each host that had to send too many segments again."""
    limit = client.thresholds.retransmits_max
    p99 = client.measurement.latency_us.get("p99")
    for role, host in client.hosts.items():
        sent, again = host.tcp.segments, host.tcp.retransmits
        yield from over(
            "retransmits",
            again / sent if sent else 0.0,
            limit,
            host=role,
            retransmits=again,
            segments=sent,
            p99_us=p99,
            network=p99 is not None and RTO_US <= p99 <= RTO_TO_US,
        )


def packet_drops(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding for each host that lost too many packets before TCP saw them.

    A card also counts a packet of a protocol that the host does not speak, of which a switch sends
    some.
    """
    limit = client.thresholds.drops_max
    for role, host in client.hosts.items():
        if lost := host.drops:
            yield from over(
                "packet_drops",
                (lost.dropped + lost.softnet_dropped) / max(lost.received, 1),
                limit,
                host=role,
                received=lost.received,
                card=lost.dropped,
                softnet=lost.softnet_dropped,
                squeezed=lost.softnet_squeezed,
            )


def calibration_link(
    directions: Mapping[str, Iperf3Direction],
    hosts: Mapping[str, Counters | None],
    thresholds: Thresholds,
) -> list[Reason]:
    """Return why the measurement of the link was disturbed; empty where it was not.

    ``hosts``: role -> what the host recorded during it, None where it did not. The recordings begin
    before iperf3 and go on between its tests, so only the seconds with its traffic are judged.
    """
    reasons: list[Reason] = []
    for role, recorded in hosts.items():
        if recorded is not None:
            at = counters.edges(recorded, float(recorded.t[0]), float(recorded.t[-1]))
            used = counters.use(recorded, at)
            traffic = (used.rx + used.tx) / used.seconds
            ran = traffic >= TRAFFIC_MIN * traffic.max()
            foreign = [] if used.foreign is None else used.foreign[ran].tolist()
            reasons += _foreign(role, foreign, len(recorded.cores), thresholds)
            stolen = used.modes["steal"][ran].tolist()
            reasons += _stolen(role, stolen, len(recorded.cores), thresholds)
    for direction, throughput in directions.items():
        spread, again = throughput.spread or 0.0, throughput.retransmitted or 0.0
        spread_max, again_max = thresholds.iperf3_spread_max, thresholds.iperf3_retransmits_max
        reasons += over("iperf3_spread", spread, spread_max, direction=direction)
        reasons += over("iperf3_retransmits", again, again_max, direction=direction)
    return reasons


# Their reasons void a repetition.
VOIDING: tuple[ClientRule, ...] = (
    generator_cpu,
    steal,
    foreign_cpu,
    emulated,
    clock_jump,
    link_down,
    swapping,
    allowance,
    telemetry_gap,
    recording_gap,
    link,
)
