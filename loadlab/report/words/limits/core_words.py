"""Words for limits of the server's cores and memory."""

from __future__ import annotations

from collections.abc import Callable

from loadlab.model import Reason
from loadlab.report.words.limits.wording import (
    SERVICES,
    Limit,
    Limits,
    always,
    fact,
    number,
    part,
    value,
)
from loadlab.run import formatting

_PARTS = {**SERVICES, "packets": "the kernel, for packets"}
# Who opened a connection for each request -> what opens none or cheaper ones, and the lesson of it.
_OPENS = {
    "clients": ("clients that keep their connections", "keepalive"),
    "http": ("upstream_keepalive=true, which opens no connections", "keepalive"),
    "uwsgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
    "fastcgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
}


def _cores(number: float) -> str:
    return f"{formatting.significant(number, 2)} cores"


def _opened(reason: Reason) -> str:
    return "; each request opened a connection" if "opened" in reason.facts else ""


def _opens(otherwise: str) -> Callable[[Reason], str]:
    """Return the words for what is next where each request opened a connection."""
    return lambda reason: (
        _OPENS[str(reason.facts["opened"])][0] if "opened" in reason.facts else otherwise
    )


def _lesson_of_opens(reason: Reason) -> str:
    return _OPENS[str(reason.facts["opened"])][1] if "opened" in reason.facts else ""


def _filled(reason: Reason, who: str) -> str:
    """Return the words for a service that filled a core, or most of all full cores."""
    process, thread = fact(reason, "process"), fact(reason, "thread")
    cores, idle, most = int(fact(reason, "cores")), fact(reason, "idle_cores"), number(reason.limit)
    if value(reason) < most:
        every = "core" if cores == 1 else "cores"
        part = formatting.percent(min(1.0, fact(reason, "part")))
        return (
            f"the CPU time of {who}: {part} of what the server's full {every} gave{_opened(reason)}"
        )
    unit = (
        f"its thread was on CPU {formatting.percent(min(thread, 1.0))} of the time"
        if thread >= most
        else "its threads took turns on one core, "
        f"{formatting.percent(min(process, 1.0))} of the time"
    )
    rest = "the server has no other core" if cores == 1 else f"{_cores(idle)} were idle"
    waiting = reason.facts.get("waiting")
    queued = (
        f", {formatting.significant(number(waiting), 2)} requests waited in the accept queue"
        if waiting is not None and number(waiting) >= 1
        else ""
    )
    gil = reason.facts.get("gil")
    held = (
        f", and a thread held Python's lock (GIL) {formatting.percent(number(gil))} of the time of "
        "its profile"
        if gil is not None
        else ""
    )
    return f"one process of {who}: {unit}, {rest}{queued}{held}{_opened(reason)}"


def _database_cpu(reason: Reason) -> str:
    text = _filled(reason, "PostgreSQL")
    sessions = reason.facts.get("sessions")
    if sessions is None:
        return text
    opened = formatting.significant(number(sessions), 2)
    return f"{text}; each request opened a connection to it ({opened} for each answer)"


def _cores_busy(reason: Reason) -> str:
    cores = int(fact(reason, "cores"))
    parts = sorted(
        ((fact(reason, name), words) for name, words in _PARTS.items() if name in reason.facts),
        reverse=True,
    )
    used = ", ".join(f"{words} {formatting.percent(part)}" for part, words in parts if part >= 0.01)
    whole = "the server's core" if cores == 1 else f"the server's {cores} cores"
    text = f"{whole}: {formatting.percent(value(reason))} busy"
    return f"{text}; of that {used}{_opened(reason)}" if used else f"{text}{_opened(reason)}"


def _memory(reason: Reason) -> str:
    killed = reason.facts.get("killed")
    if killed is not None:
        some = formatting.plural(int(number(killed)), "time")
        return f"memory: the kernel killed a process {some} because none was left"
    swapped = reason.facts.get("swapped")
    if swapped is not None:
        return f"memory: {int(number(swapped)):,} pages were swapped"
    return f"memory: processes waited for it {formatting.percent(value(reason))} of the time"


def _by_cores(reason: Reason) -> str:
    if (
        "cores" in reason.facts
        and int(fact(reason, "cores")) > 1
        and fact(reason, "idle_cores") > 0.5
    ):
        return f"-e workers={int(fact(reason, 'processes')) + 1}"
    return "-e profile=true shows what it computes; or give the server more cores"


LIMITS: Limits = {
    "memory": Limit(
        _memory, part("waits for memory"),
        "Processes waited for memory (PSI), pages were swapped, or the kernel killed a process.",
        always("fewer -e workers=, or a host or a unit (MemoryMax=) with more memory"),
    ),
    "nginx_cpu": Limit(
        lambda reason: _filled(reason, "nginx"), part("nginx's busiest process"),
        "nginx used most of full cores, or a worker of it filled one.",
        _opens("-e reverse_proxy=none shows what nginx costs"),
        _lesson_of_opens,
    ),
    "worker_cpu": Limit(
        lambda reason: _filled(reason, "the application"), part("the busiest worker"),
        "One worker of the application filled a core: its event loop, or Python's global lock.",
        _by_cores,
        lambda reason: "event_loop_blocked" if reason.facts.get("loop") else "",
    ),
    "database_cpu": Limit(
        _database_cpu, part("PostgreSQL's busiest process"),
        "PostgreSQL used most of full cores, or a connection of it filled one.",
        lambda reason: (
            "a pool of database connections in the application"
            if "sessions" in reason.facts
            else "EXPLAIN of the longest statement in the report"
        ),
        lambda reason: "connection_pool" if "sessions" in reason.facts else "",
    ),
    "kernel_softirq": Limit(
        lambda reason: (
            "the kernel's work on packets: softirq took "
            f"{formatting.percent(max(value(reason), fact(reason, 'part')))} of a core"
        ),
        part("softirq"),
        "The kernel's work on packets filled a core, or most of full cores.",
        always("the interrupts of the network card spread over more cores"),
    ),
    "cores_busy": Limit(
        _cores_busy, part("CPU"),
        "The server's cores were full, and no service had most of them.",
        _opens("-e profile=true shows what the application computes; or more cores"),
        _lesson_of_opens,
    ),
}  # fmt: skip
