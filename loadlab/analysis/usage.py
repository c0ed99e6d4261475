"""What a request of one repetition cost the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loadlab.core.model import Processes, Repetition, ServiceProcesses
from loadlab.telemetry.processes import GROUPS

# Smallest part of the CPU time whose share in the kernel is known, where the whole is told.
SHARE_OF = 0.9


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
    """Return each service's processes, of those that had any."""
    found = services(rep)
    each: list[Processes | None] = [getattr(found, group) for group in GROUPS] if found else []
    return [one for one in each if one is not None]


def _sum(
    rep: Repetition, of: Callable[[Processes], float | None], scale: float = 1.0
) -> float | None:
    """Return a count of all services by request; None where that of one is not known."""
    used = _recorded(rep)
    known = [count for one in used if (count := of(one)) is not None]
    return by_request(scale * sum(known), rep) if known and len(known) == len(used) else None


def all_cpu_us(rep: Repetition) -> float | None:
    """Return the CPU time of all services by request, µs; None where that of one is not known."""
    return _sum(rep, lambda used: used.cpu_s, 1e6)


def _of(group: str) -> Callable[[Repetition], float | None]:
    def used(rep: Repetition) -> float | None:
        recorded = services(rep)
        one: Processes | None = getattr(recorded, group) if recorded else None
        return None if one is None else cpu_us(one, rep)

    return used


def _kernel_us(rep: Repetition) -> float | None:
    """Return the services' CPU time in the kernel by request, µs.

    A service that no tick of the kernel met has no share. It is taken to have that of the others,
    which must have SHARE_OF of all CPU time.
    """
    whole = all_cpu_us(rep)
    if not whole:
        return None
    known = [
        (one.cpu_s, one.system_share)
        for one in _recorded(rep)
        if one.cpu_s and one.system_share is not None
    ]
    spent_s = sum(cpu_s for cpu_s, _ in known)
    if spent_s < SHARE_OF * sum(one.cpu_s or 0.0 for one in _recorded(rep)):
        return None
    return whole * sum(cpu_s * share for cpu_s, share in known) / spent_s


def _interrupts_us(rep: Repetition) -> float | None:
    if rep.telemetry is None or rep.duration_s is None:
        return None
    host = rep.telemetry.server
    spent_s = (host.cpu.irq + host.cpu.softirq) * host.cores * rep.duration_s
    return by_request(1e6 * spent_s, rep)


def _switches(used: Processes) -> float | None:
    if used.voluntary_switches is None or used.involuntary_switches is None:
        return None
    return used.voluntary_switches + used.involuntary_switches


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
    "switches_per_request": lambda rep: _sum(rep, _switches),
    "joules_per_request": _joules,
}
