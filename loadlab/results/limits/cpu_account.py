"""Where the time of a mean request went."""

from collections.abc import Iterator

from loadlab.model import TimePart
from loadlab.results.limits.limit_evidence import Evidence
from loadlab.telemetry.processes import GROUPS

_CPU = {
    "reverse_proxy": "reverse_proxy_cpu",
    "application": "application_cpu",
    "postgresql": "database_cpu",
}


def parts(evidence: Evidence) -> list[TimePart]:
    """Return the parts of the time of a mean request, largest first; empty without answers.

    CPU time and the wait for a core are those of the services for each request that they took. A
    mean number of waiting connections, divided by the answers a second, is the mean wait (Little's
    law). ``application_wait`` is the rest of the time that the reverse proxy waited for the
    application, by its own log; ``elsewhere`` the rest of the client's. Each is absent where that
    time is unknown.
    """
    if not evidence.rep.responses or not evidence.rate:
        return []
    cpu_times = dict(_known(evidence))
    log = evidence.server.reverse_proxy
    if log is not None and log.upstream_us is not None:
        behind = sum(
            us for name, us in cpu_times.items() if name not in ("reverse_proxy_cpu", "run_queue")
        )
        cpu_times["application_wait"] = max(0.0, log.upstream_us - behind)
    if evidence.mean_us is not None:
        cpu_times["elsewhere"] = max(0.0, evidence.mean_us - sum(cpu_times.values()))
    order = sorted(cpu_times.items(), key=lambda item: -item[1])
    return [TimePart(part=name, us=us) for name, us in order if us > 0]


def elsewhere_us(evidence: Evidence) -> float:
    """Return the part of a mean request's time that nothing recorded explains, µs."""
    return next((part.us for part in parts(evidence) if part.part == "elsewhere"), 0.0)


def _known(evidence: Evidence) -> Iterator[tuple[str, float]]:
    taken = evidence.rep.reverse_proxy_requests or evidence.rep.responses or 1
    waited = 0.0
    for name in GROUPS:
        used = evidence.service(name)
        if used is None:
            continue
        if used.cpu_s is not None:
            yield _CPU[name], 1e6 * used.cpu_s / taken
        waited += used.run_queue_wait_s or 0.0
    yield "run_queue", 1e6 * waited / taken
    queued = (evidence.waiting("application") or 0.0) + (evidence.waiting("reverse_proxy") or 0.0)
    yield "accept_queue", 1e6 * queued / evidence.rate
    for name, mean in evidence.waits.items():
        yield f"database_{name}", 1e6 * mean / evidence.rate
