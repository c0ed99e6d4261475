"""What a request of one repetition cost the server."""

from collections.abc import Callable, Mapping

from loadlab.model import Processes, Repetition, ServiceProcesses
from loadlab.telemetry.processes import GROUPS

# A sum over all services needs the services with this share of the CPU time. A short process of
# PostgreSQL leaves no count of its switches.
MOST = 0.95


def by_request(count: float | None, rep: Repetition) -> float | None:
    """Return a count of the server by request that the reverse proxy took.

    A closed loop cuts off some of these requests unanswered. Without one nothing counts requests at
    the server, so the count is by answer at the client.
    """
    taken = rep.responses if rep.reverse_proxy_requests is None else rep.reverse_proxy_requests
    return None if count is None or not taken else count / taken


def services(rep: Repetition) -> ServiceProcesses | None:
    """Return the processes of the server's services; None where they were not recorded."""
    return rep.telemetry.server.processes if rep.telemetry else None


def _recorded(rep: Repetition) -> list[Processes]:
    """Return the processes of each service that had processes."""
    return [used for group in GROUPS if (used := getattr(services(rep), group, None)) is not None]


def _most(
    rep: Repetition, figure: Callable[[Processes], float | None]
) -> list[tuple[Processes, float]] | None:
    """Return the services that have the figure; None where these have less than MOST of the CPU
    time."""
    every = _recorded(rep)
    pairs = [(used, number) for used in every if (number := figure(used)) is not None]
    spent_s = sum(used.cpu_s or 0.0 for used, _ in pairs)
    return pairs if pairs and spent_s >= MOST * sum(used.cpu_s or 0.0 for used in every) else None


def all_cpu_us(rep: Repetition) -> float | None:
    """Return the CPU time of all services by request, µs; None where that of one is not known."""
    spent_s = [used.cpu_s for used in _recorded(rep)]
    numbers = [seconds for seconds in spent_s if seconds is not None]
    complete = numbers and len(numbers) == len(spent_s)
    return by_request(1e6 * sum(numbers), rep) if complete else None


def _of_service(group: str) -> Callable[[Repetition], float | None]:
    def used_us(rep: Repetition) -> float | None:
        cpu_s: float | None = getattr(getattr(services(rep), group, None), "cpu_s", None)
        return by_request(None if cpu_s is None else 1e6 * cpu_s, rep)

    return used_us


def _relative_cpu(rep: Repetition) -> float | None:
    """Return the application's CPU time by that of the services beside it; None without these."""
    used = services(rep)
    if used is None or used.application is None or used.application.cpu_s is None:
        return None
    beside = [part.cpu_s for part in (used.reverse_proxy, used.postgresql) if part is not None]
    spent_s = [seconds for seconds in beside if seconds is not None]
    complete = spent_s and len(spent_s) == len(beside)
    return used.application.cpu_s / sum(spent_s) if complete and sum(spent_s) else None


def _kernel_us(rep: Repetition) -> float | None:
    """Return the services' CPU time in the kernel by request, µs.

    A service that no tick of the kernel met has no share: it counts with that of the others.
    """
    shares = _most(rep, lambda used: used.system_share)
    whole = all_cpu_us(rep)
    if shares is None or whole is None:
        return None
    spent_s = sum(used.cpu_s or 0.0 for used, _ in shares)
    in_kernel_s = sum((used.cpu_s or 0.0) * share for used, share in shares)
    return whole * in_kernel_s / spent_s if spent_s else None


def _interrupts_us(rep: Repetition) -> float | None:
    host = rep.telemetry.server if rep.telemetry else None
    if host is None or host.seconds is None:
        return None
    spent_s = (host.cpu.irq + host.cpu.softirq) * host.cores * host.seconds
    return by_request(1e6 * spent_s, rep)


def _switches(rep: Repetition) -> float | None:
    """Return the services' context switches by request, voluntary or not."""

    def count(used: Processes) -> float | None:
        if used.voluntary_switches is None or used.involuntary_switches is None:
            return None
        return used.voluntary_switches + used.involuntary_switches

    counts = _most(rep, count)
    return None if counts is None else by_request(sum(number for _, number in counts), rep)


# The path of a reading -> its value in a repetition; None where it is not known.
COMPUTED: Mapping[str, Callable[[Repetition], float | None]] = {
    "cpu_us_per_request": all_cpu_us,
    "reverse_proxy_cpu_us_per_request": _of_service("reverse_proxy"),
    "application_cpu_us_per_request": _of_service("application"),
    "postgresql_cpu_us_per_request": _of_service("postgresql"),
    "application_cpu_relative": _relative_cpu,
    "kernel_cpu_us_per_request": _kernel_us,
    "interrupts_us_per_request": _interrupts_us,
    "switches_per_request": _switches,
    "joules_per_request": lambda rep: by_request(
        rep.telemetry.server.energy_j if rep.telemetry else None, rep
    ),
}
