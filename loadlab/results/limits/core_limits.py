"""Limits of the server's cores and memory."""

from __future__ import annotations

from loadlab.results.limits.limit_evidence import Check, Evidence, check

# A process with several threads that computes on one core at a time: a little above 1, as the
# kernel's numbers and the end of the load do not lie at the same moment.
_ONE_CORE = 1.1
# From so many database connections for each request on, each request opens one.
_EACH = 0.5
_CODES = {"nginx": "nginx_cpu", "application": "worker_cpu", "postgresql": "database_cpu"}


def _parts(found: Evidence) -> dict[str, float]:
    """Return each service's part of the CPU time used, and the kernel's for packets."""
    cpu = found.server.cpu
    apart = max(0.0, found.busy - sum(found.shares.values()))
    packets = min(apart, cpu.softirq + cpu.irq)
    total = max(found.busy, sum(found.shares.values())) or 1.0
    return {name: used / total for name, used in found.shares.items()} | {
        "packets": packets / total
    }


def full(found: Evidence) -> list[Check]:
    """Look who filled the server's cores: a service, the kernel, or all together."""
    rule, parts = found.rule, _parts(found)
    checks = []
    for name, code in _CODES.items():
        used = found.service(name)
        # The others are there too, idle.
        asked = {"nginx": found.proxied, "postgresql": found.database is not None}
        if used is None or used.cpu is None or not (asked.get(name, True) or used.cpu > 0.01):
            continue
        part = parts[name]
        # Of one core, the application's thread is the limit only if hardly anything else needs it.
        most = rule.limit_core_full if code == "worker_cpu" else rule.limit_cpu_share
        filled = found.full and part >= most
        process, thread = used.busiest_process or 0.0, used.busiest_thread or 0.0
        core = thread >= rule.limit_core_full or (
            code == "worker_cpu" and rule.limit_core_full <= process <= _ONE_CORE
        )
        if code == "worker_cpu" and filled:
            filled = core
        checks.append(
            check(
                code,
                filled or (core and not found.full),
                max(process, thread),
                rule.limit_core_full,
                part=part,
                process=process,
                thread=thread,
                idle_cores=found.idle_cores,
                cores=found.server.cores,
                processes=used.processes_max,
                waiting=found.waiting("application") if code == "worker_cpu" else None,
                loop=(code == "worker_cpu" and found.threads is None) or None,
                sessions=_sessions(found) if code == "database_cpu" else None,
                opened=_opened(found) if code == "nginx_cpu" else None,
            )
        )
    checks.append(_packets(found, parts["packets"]))
    return [*checks, _cores(found, parts)]


def _sessions(found: Evidence) -> float | None:
    """Return the connections made to the database for each answer; None where each request opens
    none."""
    if found.database is None or not found.rep.responses:
        return None
    each = found.database.sessions / found.rep.responses
    return each if each >= _EACH else None


def _packets(found: Evidence, part: float) -> Check:
    core = found.server.softirq_busiest_core or 0.0
    alone = found.server.cores > 1 and core >= found.rule.limit_core_full
    return check(
        "kernel_softirq",
        alone or (found.full and part >= found.rule.limit_cpu_share),
        core,
        found.rule.limit_core_full,
        part=part,
    )


def _cores(found: Evidence, parts: dict[str, float]) -> Check:
    return check(
        "cores_busy",
        found.full,
        found.busy,
        found.rule.limit_cpu_full,
        cores=found.server.cores,
        opened=_opened(found),
        **parts,
    )


def _opened(found: Evidence) -> str | None:
    """Return who opened a TCP connection for each request; None where nobody did, or it is unknown.

    clients: the generator. http, uwsgi, fastcgi: nginx, to the application by that protocol.
    """
    passive, answers = found.server.tcp.passive_opens, found.rep.responses
    if not answers or passive < _EACH * answers:
        return None
    cell = found.cell
    over_tcp = found.proxied and cell.transport == "tcp" and not cell.upstream_keepalive
    return cell.protocol if over_tcp and cell.load.keepalive is not False else "clients"


def memory(found: Evidence) -> Check | None:
    """Look for memory that processes waited for, or were killed for."""
    pressure, limit = found.server.memory_pressure, found.rule.limit_pressure
    if found.server.oom_kills:
        return check("memory", True, pressure, limit, killed=found.server.oom_kills)
    if found.server.swap_pages:
        return check("memory", True, pressure, limit, swapped=found.server.swap_pages)
    if pressure is None:
        return None
    return check("memory", pressure >= limit, pressure, limit)
