"""Limits of the server's cores and memory."""

from loadlab.reasons.limit_reasons import THRESHOLDS
from loadlab.results import usage
from loadlab.results.limits.limit_evidence import Check, Evidence, LimitCheck, check
from loadlab.telemetry.processes import GROUPS

# A process with several threads that computes on one core at a time: a little above 1, as the
# kernel's numbers and the end of the load do not lie at the same moment.
_ONE_CORE = 1.1
# From so many database connections for each request on, each request opens one.
_EACH = 0.5
# A thread that waits by so much more of the time than others are on cores may not use them.
_WITHHELD = 0.2
_CODES = {
    "reverse_proxy": "reverse_proxy_cpu",
    "application": "worker_cpu",
    "postgresql": "database_cpu",
}


def _parts(evidence: Evidence) -> dict[str, float]:
    """Return each service's part of the CPU time used, and the kernel's for packets."""
    cpu = evidence.server.cpu
    apart = max(0.0, evidence.busy - sum(evidence.shares.values()))
    packets = min(apart, cpu.softirq + cpu.irq)
    total = max(evidence.busy, sum(evidence.shares.values())) or 1.0
    return {name: used / total for name, used in evidence.shares.items()} | {
        "packets": packets / total
    }


def full(evidence: Evidence) -> list[Check]:
    """Look who filled the server's cores: a service, the kernel, or all together."""
    parts = _parts(evidence)
    checks = []
    for name, code in _CODES.items():
        used = evidence.service(name)
        # The others are there too, idle.
        takes_part = {
            "reverse_proxy": not evidence.cell.direct,
            "postgresql": evidence.database is not None,
        }
        if used is None or used.cpu is None or not (takes_part.get(name, True) or used.cpu > 0.01):
            continue
        part = parts[name]
        # Of one core, the application's thread is the limit only if hardly anything else needs it.
        most = THRESHOLDS.core_full if code == "worker_cpu" else THRESHOLDS.cpu_share
        filled = evidence.full and part >= most
        process, thread = used.busiest_process or 0.0, used.busiest_thread or 0.0
        core = thread >= THRESHOLDS.core_full or (
            code == "worker_cpu" and THRESHOLDS.core_full <= process <= _ONE_CORE
        )
        if code == "worker_cpu" and filled:
            filled = core
        checks.append(
            check(
                code,
                filled or (core and not evidence.full),
                max(process, thread),
                THRESHOLDS.core_full,
                part=part,
                process=process,
                thread=thread,
                idle_cores=evidence.idle_cores,
                cores=evidence.server.cores,
                processes=used.processes_max,
                waiting=evidence.waiting("application") if code == "worker_cpu" else None,
                loop=(code == "worker_cpu" and evidence.threads is None) or None,
                sessions=_sessions(evidence) if code == "database_cpu" else None,
                opened=_opened(evidence) if code == "reverse_proxy_cpu" else None,
            )
        )
    checks.append(_packets(evidence, parts["packets"]))
    return [*checks, _cores(evidence, parts)]


def _sessions(evidence: Evidence) -> float | None:
    """Return how many connections to the database a request opens on average; None where requests
    open none. A closed loop's last requests count too, though it cuts them off."""
    if evidence.database is None:
        return None
    per_request = usage.by_request(evidence.database.sessions, evidence.rep)
    return per_request if per_request is not None and per_request >= _EACH else None


def _packets(evidence: Evidence, part: float) -> Check:
    core = evidence.server.softirq_busiest_core
    alone = evidence.server.cores > 1 and core >= THRESHOLDS.core_full
    return check(
        "kernel_softirq",
        alone or (evidence.full and part >= THRESHOLDS.cpu_share),
        core,
        THRESHOLDS.core_full,
        part=part,
    )


def _cores(evidence: Evidence, parts: dict[str, float]) -> Check:
    load = evidence.cell.load
    # In a closed loop, the lanes take turns.
    together = load.lanes is not None and load.mode != "closed"
    others = {"other_lanes": max(0.0, 1 - sum(parts.values()))} if together else {}
    return check(
        "cores_busy",
        evidence.full,
        evidence.busy,
        THRESHOLDS.cpu_full,
        cores=evidence.server.cores,
        opened=_opened(evidence),
        **parts,
        **others,
    )


def _opened(evidence: Evidence) -> str | None:
    """Return who opened a TCP connection for each request; None where nobody did, or it is unknown.

    clients: the generator. http, uwsgi, fastcgi: the reverse proxy, to the application by that
    protocol.
    """
    cell = evidence.cell
    passive, answers = evidence.server.tcp.passive_opens, evidence.rep.responses
    # The host counts those of all lanes.
    if cell.load.lanes or passive is None or not answers or passive < _EACH * answers:
        return None
    over_tcp = cell.transport == "tcp" and not (cell.direct or cell.upstream_keepalive)
    return cell.protocol if over_tcp and cell.load.keepalive is not False else "clients"


def memory(evidence: Evidence) -> Check | None:
    """Look for memory that processes waited for, or were killed for."""
    pressure, limit = evidence.server.memory_pressure, THRESHOLDS.pressure
    killed = evidence.server.oom_kills
    # The kernel counts those of the whole machine; a killed worker fails its requests.
    if killed and (evidence.affects(evidence.failed) or (pressure or 0.0) >= limit):
        return check("memory", True, pressure, limit, killed=killed)
    swapped = evidence.server.swap_pages
    # The kernel writes idle pages out by 32 and reads 8 at once: no request need have waited.
    waited = pressure is None or pressure >= THRESHOLDS.affected
    if waited and evidence.affects(swapped):
        return check("memory", True, pressure, limit, swapped=swapped)
    if pressure is None:
        return None
    return check("memory", pressure >= limit, pressure, limit)


def cpu_quota(evidence: Evidence) -> Check | None:
    """Look for a thread that waited for a core while one was idle: it may not use it."""
    waits = {
        name: used
        for name in GROUPS
        if (used := evidence.service(name)) is not None and used.longest_wait is not None
    }
    if not waits:
        return None
    name = max(waits, key=lambda service: waits[service].longest_wait or 0.0)
    # The kernel's numbers and the end of the load do not lie at the same moment.
    wait, own = min(1.0, waits[name].longest_wait or 0.0), waits[name].busiest_thread or 0.0
    # Where it may use every core, it waits at most while others are on one.
    withheld = wait + own > evidence.busy + _WITHHELD
    return check(
        "cpu_quota",
        not evidence.full and wait >= THRESHOLDS.waiting and withheld,
        wait,
        THRESHOLDS.waiting,
        service=name,
        busy=evidence.busy,
    )


RULES: tuple[LimitCheck, ...] = (memory, cpu_quota, full)
