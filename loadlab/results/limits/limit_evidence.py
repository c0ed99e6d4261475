"""What the limit of a repetition is looked for in."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from loadlab.model import (
    Cell,
    Database,
    Facts,
    HostTelemetry,
    Processes,
    Reason,
    Repetition,
    ServiceProcesses,
    TimePart,
)
from loadlab.reasons.limit_reasons import THRESHOLDS
from loadlab.telemetry.processes import GROUPS

# Waits of PostgreSQL for the flush of its log, beside those of the type IO.
FLUSHES = ("LWLock:WALWrite", "Timeout:CommitDelay")
# Part of the transactions that flush the log, from which an active connection that neither computes
# nor waits for anything known waits for a flush: PostgreSQL before 18 does not name commit_delay.
FLUSHING = 0.3
_CPU = {
    "reverse_proxy": "reverse_proxy_cpu",
    "application": "application_cpu",
    "postgresql": "database_cpu",
}
# Linux sends a SYN again after 1 s at the earliest (TCP_TIMEOUT_INIT).
RESENT_US = 1_000_000


class Check(NamedTuple):
    """One limit that was looked for: whether it was found, with the evidence for or against it."""

    is_limit: bool
    evidence: Reason


def check(
    code: str,
    is_limit: bool,
    value: float | str | None = None,
    limit: float | None = None,
    **facts: str | float | bool | None,
) -> Check:
    """Return a check; facts that are None are left out."""
    recorded: Facts = {name: fact for name, fact in facts.items() if fact is not None}
    return Check(is_limit, Reason(code=code, value=value, limit=limit, facts=recorded))


@dataclass(frozen=True)
class Evidence:
    """One repetition that did not fail, with the server's and the client's telemetry."""

    cell: Cell
    rep: Repetition
    server: HostTelemetry
    client: HostTelemetry

    def reasons(self, *codes: str) -> list[Reason]:
        """Return the void reasons and findings with one of these codes."""
        every = [*self.rep.validity.reasons, *self.rep.validity.findings]
        return [reason for reason in every if reason.code in codes]

    def service(self, name: str) -> Processes | None:
        """Return the processes of a service; None where they were not recorded."""
        processes: Processes | None = getattr(self.services, name) if self.services else None
        return processes

    @property
    def connections(self) -> int:
        """Connections of the load: those kept open, or the most that were opened on demand."""
        return self.rep.opened.most if self.rep.opened else self.cell.load.connections

    @property
    def turns(self) -> float:
        """Part of the load's time in which the stack worked, fraction 0 to 1: below 1 in a closed
        loop of lanes, which take turns."""
        rep = self.rep
        if self.cell.load.lanes is None or self.cell.load.mode != "closed":
            return 1.0
        time = (rep.rate_achieved or 0.0) * (rep.duration_s or 0.0)
        return min(1.0, (rep.responses or 0) / time) if time and rep.responses else 1.0

    @cached_property
    def services(self) -> ServiceProcesses | None:
        """The server's services; what is a part of the time, of the stack's turns."""
        recorded, turns = self.server.processes, self.turns
        if recorded is None or turns == 1:
            return recorded

        def in_turns(used: Processes | None) -> Processes | None:
            if used is None:
                return None
            return replace(
                used,
                cpu=used.cpu and used.cpu / turns,
                busiest_process=used.busiest_process and used.busiest_process / turns,
                busiest_thread=used.busiest_thread and used.busiest_thread / turns,
                longest_wait=used.longest_wait and used.longest_wait / turns,
            )

        return ServiceProcesses(
            reverse_proxy=in_turns(recorded.reverse_proxy),
            application=in_turns(recorded.application),
            postgresql=in_turns(recorded.postgresql),
        )

    @property
    def database(self) -> Database | None:
        return self.server.database

    @cached_property
    def shares(self) -> dict[str, float]:
        """CPU time of each service as a fraction of all the server's cores."""
        return {
            name: used.cpu
            for name in GROUPS
            if (used := self.service(name)) is not None and used.cpu is not None
        }

    @property
    def busy(self) -> float:
        """Busy fraction of the server's cores."""
        return self.server.cpu_busy

    @property
    def full(self) -> bool:
        """Whether the server's cores are full."""
        return self.busy >= THRESHOLDS.cpu_full

    @property
    def idle_cores(self) -> float:
        return self.server.cores * (1 - self.busy)

    @cached_property
    def mean_us(self) -> float | None:
        """Mean time of a request from its sending, µs."""
        if self.rep.mean_service_time_us is not None:
            return self.rep.mean_service_time_us
        latency = self.rep.latency_us
        return latency.mean if latency and self.rep.latency_basis == "sent" else None

    @property
    def fastest_us(self) -> float | None:
        """The fastest answer, µs."""
        return self.rep.latency_us.min if self.rep.latency_us else None

    @cached_property
    def rate(self) -> float:
        """Answers a second."""
        return self.rep.rate_achieved or 0.0

    @cached_property
    def under_way(self) -> float | None:
        """Mean requests under way, by Little's law; None where it is unknown."""
        return None if self.mean_us is None else self.rate * self.mean_us / 1e6

    @cached_property
    def failed(self) -> int:
        """Requests without a right answer."""
        return max(0, (self.rep.requests or 0) - (self.rep.ok or 0) - (self.rep.aborted or 0))

    def affects(self, events: int, held_us: float = 0.0) -> bool:
        """Return whether so many events, which hit a request each, explain the p99; or, of a closed
        loop, the time of its connections, of which each event held one for ``held_us``.
        """
        requests = self.rep.scheduled or self.rep.requests or 0
        time_us = self.connections * 1e6 * (self.rep.duration_s or 0.0)
        explained = events >= THRESHOLDS.affected * requests
        return events > 0 and (explained or events * held_us > THRESHOLDS.waiting * time_us)

    @cached_property
    def p99_us(self) -> float | None:
        """p99 of the response time or the latency, µs; the slowest where there is no p99, and None
        without any."""
        waits, latency = self.rep.response_time, self.rep.latency_us
        if waits is not None and waits.p99_us is not None:
            return waits.p99_us
        if latency is None:
            return None
        return latency.max if latency.p99 is None else latency.p99

    def waiting(self, service: str) -> float | None:
        """Return the mean connections in a service's accept queues; None where not recorded."""
        queues = self.server.accept_queues
        if queues is None:
            return None
        depths = [queue.mean_depth for queue in queues if queue.service == service]
        return sum(depths) / self.turns

    def waiting_seconds(self, service: str) -> float:
        """Return the part of the seconds in which a connection waited in a service's queues."""
        depths = [
            queue.depth for queue in self.server.accept_queues or [] if queue.service == service
        ]
        seconds = [any(second) for second in zip(*depths, strict=True)]
        return sum(seconds) / len(seconds) if seconds else 0.0

    @cached_property
    def in_use(self) -> float | None:
        """Mean connections of the database that were not idle; None where not recorded."""
        if self.database is None or self.database.activity is None:
            return None
        return sum(sessions.mean for sessions in self.database.activity if sessions.state != "idle")

    @cached_property
    def waits(self) -> dict[str, float]:
        """Mean connections of the database that waited: lock, disk, other."""
        time_in = {"lock": 0.0, "disk": 0.0, "other": 0.0}
        unnamed = 0.0
        for sessions in (self.database and self.database.activity) or []:
            if sessions.state != "active" and not sessions.state.startswith("fastpath"):
                continue
            wait = sessions.wait or ""
            if wait.startswith("Lock:"):
                time_in["lock"] += sessions.mean
            elif wait.startswith("IO:") or wait in FLUSHES:
                time_in["disk"] += sessions.mean
            elif wait:
                time_in["other"] += sessions.mean
            else:
                unnamed += sessions.mean
        used, done = self.service("postgresql"), self.database
        if done and done.wal_syncs and done.wal_syncs >= FLUSHING * max(done.transactions, 1):
            computing = (used.cpu or 0.0) * self.server.cores if used else 0.0
            waited = (used.run_queue_wait_s or 0.0) / (self.rep.duration_s or 1) if used else 0.0
            time_in["disk"] += max(0.0, unnamed - computing - waited)
        return time_in

    @cached_property
    def account(self) -> list[TimePart]:
        """The parts of the time of a mean request, largest first; empty without answers.

        CPU time and the wait for a core are those of the services for each request that they took.
        A mean number of waiting connections, divided by the answers a second, is the mean wait
        (Little's law). ``application_wait`` is the rest of the time that the reverse proxy waited
        for the application, by its own log; ``elsewhere`` the rest of the client's. Each is absent
        where that time is unknown.
        """
        if not self.rep.responses or not self.rate:
            return []
        times = dict(self._recorded_us())
        log = self.server.reverse_proxy
        if log is not None and log.upstream_us is not None:
            before = ("reverse_proxy_cpu", "run_queue")
            behind = sum(us for name, us in times.items() if name not in before)
            times["application_wait"] = max(0.0, log.upstream_us - behind)
        if self.mean_us is not None:
            times["elsewhere"] = max(0.0, self.mean_us - sum(times.values()))
        order = sorted(times.items(), key=lambda item: -item[1])
        return [TimePart(part=name, us=us) for name, us in order if us > 0]

    @property
    def elsewhere_us(self) -> float:
        """The part of a mean request's time that nothing recorded explains, µs."""
        return next((part.us for part in self.account if part.part == "elsewhere"), 0.0)

    def _recorded_us(self) -> Iterator[tuple[str, float]]:
        taken = self.rep.reverse_proxy_requests or self.rep.responses or 1
        recorded = {name: used for name in GROUPS if (used := self.service(name)) is not None}
        for name, used in recorded.items():
            if used.cpu_s is not None:
                yield _CPU[name], 1e6 * used.cpu_s / taken
        waited = sum(used.run_queue_wait_s or 0.0 for used in recorded.values())
        yield "run_queue", 1e6 * waited / taken
        queued = (self.waiting("application") or 0.0) + (self.waiting("reverse_proxy") or 0.0)
        yield "accept_queue", 1e6 * queued / self.rate
        for name, mean in self.waits.items():
            yield f"database_{name}", 1e6 * mean / self.rate

    @cached_property
    def threads(self) -> int | None:
        """Requests that Gunicorn's threads work on at the same time; None for other workers."""
        if self.cell.worker_class not in ("sync", "gthread"):
            return None
        return (self.cell.workers or self.server.cores) * (self.cell.threads or 1)


def first(reasons: Iterable[Reason]) -> Reason | None:
    """Return the first of several reasons; None of none."""
    return next(iter(reasons), None)


# A rule: it looks for one limit or several. None or nothing: the cell has no evidence of them.
LimitCheck: TypeAlias = Callable[[Evidence], Check | list[Check] | None]
