"""What the server's processes used for each request of one repetition."""

from __future__ import annotations

from loadlab.core.model import Processes, Repetition, ServiceProcesses
from loadlab.telemetry.processes import GROUPS


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


def all_cpu_us(rep: Repetition) -> float | None:
    """Return the CPU time of all services by request, µs; None where that of one is not known."""
    recorded = services(rep)
    if recorded is None:
        return None
    used = [one for group in GROUPS if (one := getattr(recorded, group)) is not None]
    spent = [us for one in used if (us := cpu_us(one, rep)) is not None]
    return sum(spent) if spent and len(spent) == len(used) else None
