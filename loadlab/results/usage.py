"""What a request of one repetition cost the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loadlab.model import Processes, Repetition, ServiceProcesses
from loadlab.telemetry.processes import GROUPS

# A sum over all services needs the services with this share of the CPU time. A short process of
# PostgreSQL leaves no count of its switches.
MOST = 0.95


def by_request(count: float | None, rep: Repetition) -> float | None:
    """Return a count of the server by request that nginx took.

    A closed loop cuts off some of these requests unanswered. Without nginx nothing counts requests
    at the server, so the count is by answer at the client.
    """
    taken = rep.responses if rep.nginx_requests is None else rep.nginx_requests
    return None if count is None or not taken else count / taken


def cpu_us(used: Processes, rep: Repetition) -> float | None:
    """Return the CPU time of one service by request, µs; None where it is not known."""
    return by_request(None if used.cpu_s is None else 1e6 * used.cpu_s, rep)


def services(rep: Repetition) -> ServiceProcesses | None:
    """Return the processes of the server's services; None where they were not recorded."""
    return rep.telemetry.server.processes if rep.telemetry else None


def _recorded(rep: Repetition) -> list[Processes]:
    """Return the processes of each service that had processes."""
    found = services(rep)
    each: list[Processes | None] = [getattr(found, group) for group in GROUPS] if found else []
    return [one for one in each if one is not None]


def _most(
    rep: Repetition, of: Callable[[Processes], float | None]
) -> list[tuple[Processes, float]] | None:
    """Return the services whose value is known; None where these have less than MOST of the CPU
    time."""
    used = _recorded(rep)
    known = [(one, found) for one in used if (found := of(one)) is not None]
    spent_s, all_s = (
        sum(one.cpu_s or 0.0 for one in some) for some in ([k for k, _ in known], used)
    )
    return known if known and spent_s >= MOST * all_s else None


def all_cpu_us(rep: Repetition) -> float | None:
    """Return the CPU time of all services by request, µs; None where that of one is not known."""
    each = [one.cpu_s for one in _recorded(rep)]
    known = [spent_s for spent_s in each if spent_s is not None]
    return by_request(1e6 * sum(known), rep) if known and len(known) == len(each) else None


def _of(group: str) -> Callable[[Repetition], float | None]:
    def used(rep: Repetition) -> float | None:
        recorded = services(rep)
        one: Processes | None = getattr(recorded, group) if recorded else None
        return None if one is None else cpu_us(one, rep)

    return used


def _kernel_us(rep: Repetition) -> float | None:
    """Return the services' CPU time in the kernel by request, µs.

    A service that no tick of the kernel met has no share: it counts with that of the others.
    """
    known = _most(rep, lambda used: used.system_share)
    whole = all_cpu_us(rep)
    if known is None or whole is None:
        return None
    spent_s = sum(used.cpu_s or 0.0 for used, _ in known)
    in_kernel_s = sum((used.cpu_s or 0.0) * share for used, share in known)
    return whole * in_kernel_s / spent_s if spent_s else None


def _interrupts_us(rep: Repetition) -> float | None:
    if rep.telemetry is None or rep.duration_s is None:
        return None
    host = rep.telemetry.server
    spent_s = (host.cpu.irq + host.cpu.softirq) * host.cores * rep.duration_s
    return by_request(1e6 * spent_s, rep)


def _switches(rep: Repetition) -> float | None:
    """Return the services' context switches by request, voluntary or not."""

    def count(used: Processes) -> float | None:
        if used.voluntary_switches is None or used.involuntary_switches is None:
            return None
        return used.voluntary_switches + used.involuntary_switches

    known = _most(rep, count)
    return None if known is None else by_request(sum(each for _, each in known), rep)


def _joules(rep: Repetition) -> float | None:
    return by_request(rep.telemetry.server.energy_j if rep.telemetry else None, rep)


# Metric -> its value in a repetition; None where it is not known.
COSTS: Mapping[str, Callable[[Repetition], float | None]] = {
    "cpu_us_per_request": all_cpu_us,
    "nginx_cpu_us_per_request": _of("nginx"),
    "application_cpu_us_per_request": _of("application"),
    "postgresql_cpu_us_per_request": _of("postgresql"),
    "kernel_cpu_us_per_request": _kernel_us,
    "interrupts_us_per_request": _interrupts_us,
    "switches_per_request": _switches,
    "joules_per_request": _joules,
}
