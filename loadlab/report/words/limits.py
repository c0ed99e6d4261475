"""Words for what limited a cell; loadlab/analysis/limits finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loadlab.core import formatting
from loadlab.core.errors import ResultError
from loadlab.core.model import CellLimit, Reason

SERVICES = {"nginx": "nginx", "application": "the application", "postgresql": "PostgreSQL"}
_PARTS = {**SERVICES, "packets": "the kernel, for packets"}
# Parts of the time of a request.
PARTS = {
    "nginx_cpu": "nginx, on a core",
    "application_cpu": "the application, on a core",
    "database_cpu": "PostgreSQL, on a core",
    "run_queue": "ready, and waiting for a core",
    "accept_queue": "in an accept queue, waiting for a worker",
    "database_lock": "waiting for a lock of the database",
    "database_disk": "waiting for the database's disk",
    "database_other": "waiting for something else in the database",
    "application_wait": "behind nginx, waiting for something that was not recorded",
    "elsewhere": "elsewhere: in line for a worker, on the network, in the client",
}
_CLIENT = {
    "generator_cpu": "its CPU was full",
    "generator_late": "the generator sent requests late",
    "rate_missed": "the generator did not keep its schedule",
    "open_files": "it had no free file descriptor (EMFILE)",
    "local_ports": "it had no free local port (EADDRNOTAVAIL)",
}
_DATABASE_WAITS = {"lock": "a lock", "disk": "the disk", "other": "something else"}


class Limit(NamedTuple):
    """One code.

    - words: the sentence on a reason, after "limited by"
    - out: why it was ruled out, from its evidence
    - meaning: without the values of one case
    - following: what to measure next; lesson: the name of the lesson on it; empty for none
    """

    words: Callable[[Reason], str]
    out: Callable[[Reason], str]
    meaning: str
    following: Callable[[Reason], str]
    lesson: Callable[[Reason], str] = lambda why: ""


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _fact(why: Reason, name: str) -> float:
    return _number(why.facts[name])


def _value(why: Reason) -> float:
    return _number(why.value)


def _percent(value: float) -> str:
    return formatting.percent(value)


def _cores(number: float) -> str:
    return f"{formatting.significant(number, 2)} cores"


def _always(text: str) -> Callable[[Reason], str]:
    return lambda why: text


def _part(name: str) -> Callable[[Reason], str]:
    """Return the words for a value that is a part of something."""
    return lambda why: f"{name} {_percent(_value(why))}"


def _count(name: str) -> Callable[[Reason], str]:
    return lambda why: formatting.plural(int(_value(why)), name)


def _neighbour(why: Reason) -> str:
    host, wait = why.facts["host"], why.facts.get("wait_us")
    if why.facts["cause"] == "steal":
        return f"another machine on the hardware of the {host}: its hypervisor took CPU time"
    mean = f"{_percent(_value(why))} of the {host}'s CPU" if why.value is not None else "CPU"
    waited = (
        f"; a request's threads waited {formatting.ms(_number(wait))} ms for a core"
        if wait is not None and host == "server"
        else ""
    )
    worst = why.facts.get("worst")
    most = f", {_percent(_number(worst))} in the worst second" if worst is not None else ""
    return f"somebody else's programs: they used {mean}{most}{waited}"


def _client(why: Reason) -> str:
    failed = why.facts.get("failed")
    failures = f" for {int(_number(failed)):,} requests" if failed is not None else ""
    return (
        f"the client: {_CLIENT[str(why.facts['cause'])]}{failures}; its cores were "
        f"{_percent(_value(why))} busy"
    )


def _none(why: Reason) -> str:
    p99 = formatting.ms(_value(why))
    return (
        f"{_fact(why, 'rate'):,g} requests/s came back right with p99 {p99} ms, within "
        f"{formatting.ms(_number(why.limit))} ms; the server's cores were "
        f"{_percent(_fact(why, 'busy'))} busy"
    )


def _failed(why: Reason) -> str:
    return formatting.plural(int(_fact(why, "failed")), "failed request")


def _queue(why: Reason) -> str:
    service = why.facts.get("service")
    where = f"the accept queue of {SERVICES[str(service)]}" if service else "an accept queue"
    depth = why.facts.get("depth")
    room = f", which holds {int(_number(depth)):,} connections" if depth is not None else ""
    return (
        f"{where}{room}: it was full, and {int(_value(why)):,} connections were refused, while "
        "cores were idle"
    )


def _filled(why: Reason, who: str) -> str:
    """Return the words for a service that filled a core, or most of all full cores."""
    process, thread = _fact(why, "process"), _fact(why, "thread")
    cores, idle, most = int(_fact(why, "cores")), _fact(why, "idle_cores"), _number(why.limit)
    if _value(why) < most:
        every = "core" if cores == 1 else "cores"
        part = _percent(min(1.0, _fact(why, "part")))
        return f"the CPU time of {who}: {part} of what the server's full {every} gave"
    unit = (
        f"its thread was on CPU {_percent(min(thread, 1.0))} of the time"
        if thread >= most
        else f"its threads took turns on one core, {_percent(min(process, 1.0))} of the time"
    )
    rest = "the server has no other core" if cores == 1 else f"{_cores(idle)} were idle"
    waiting = why.facts.get("waiting")
    queued = (
        f", {formatting.significant(_number(waiting), 2)} requests waited in the accept queue"
        if waiting is not None and _number(waiting) >= 1
        else ""
    )
    return f"one process of {who}: {unit}, {rest}{queued}"


def _database_cpu(why: Reason) -> str:
    text = _filled(why, "PostgreSQL")
    each = why.facts.get("sessions")
    if each is None:
        return text
    number = formatting.significant(_number(each), 2)
    return f"{text}; each request opened a connection to it ({number} for each answer)"


def _cores_busy(why: Reason) -> str:
    cores = int(_fact(why, "cores"))
    parts = sorted(
        ((_fact(why, name), words) for name, words in _PARTS.items() if name in why.facts),
        reverse=True,
    )
    used = ", ".join(f"{words} {_percent(part)}" for part, words in parts if part >= 0.01)
    whole = "the server's core" if cores == 1 else f"the server's {cores} cores"
    text = f"{whole}: {_percent(_value(why))} busy"
    opened = "; each request opened a connection" if why.facts.get("opened") else ""
    return f"{text}; of that {used}{opened}" if used else f"{text}{opened}"


def _memory(why: Reason) -> str:
    swapped = why.facts.get("swapped")
    if swapped is not None:
        return f"memory: {int(_number(swapped)):,} pages were swapped"
    return f"memory: processes waited for it {_percent(_value(why))} of the time"


def _delayed_ack(why: Reason) -> str:
    return (
        f"delayed acknowledgements: {formatting.significant(_value(why), 2)} for each answer, "
        f"which took {formatting.ms(_fact(why, 'mean_us'))} ms, while cores were idle"
    )


def _lock(why: Reason) -> str:
    return (
        f"a lock in the database: {formatting.significant(_fact(why, 'sessions'), 2)} of "
        f"{formatting.significant(_fact(why, 'in_use'), 2)} connections in use waited for one"
    )


def _pool(why: Reason) -> str:
    wait = why.facts.get("wait")
    waited = f"; they waited for {_DATABASE_WAITS[str(wait)]}" if wait else ""
    under_way = formatting.significant(_fact(why, "under_way"), 2)
    return (
        f"the pool of database connections: {_percent(_value(why))} of "
        f"{int(_fact(why, 'connections')):,} were in use, for {under_way} requests under way"
        f"{waited}"
    )


def _disk(why: Reason) -> str:
    flushes = why.facts.get("flushes")
    counted = f", {int(_number(flushes)):,} flushes of its log" if flushes else ""
    return (
        f"the database's disk: requests waited for it {_percent(_value(why))} of their time"
        f"{counted}"
    )


def _link(why: Reason) -> str:
    if why.facts["cause"] == "full":
        used = formatting.bits(_fact(why, "bits_per_second"))
        return f"the link: {used}, {_percent(_value(why))} of what iperf3 measured"
    if why.facts["cause"] == "lost":
        return "the link: segments were lost, and sent again after 200 ms or more"
    rtt, least = (formatting.ms(_fact(why, name)) for name in ("rtt_us", "least_rtt_us"))
    return (
        f"the link: its round trip of {rtt} ms (at least {least} ms), "
        f"{formatting.significant(_fact(why, 'trips'), 2)} times with windows of "
        f"{_fact(why, 'window'):.0f} segments, is {_percent(_value(why))} of a request"
    )


def _threads(why: Reason) -> str:
    idle = _percent(1 - min(1.0, _fact(why, "busy")))
    threads = why.facts.get("threads")
    if threads is None:
        return (
            f"its workers: {formatting.significant(_value(why), 2)} connections waited in the "
            f"accept queue while {idle} of the CPU was idle"
        )
    under_way = formatting.significant(_fact(why, "under_way"), 2)
    return (
        f"its {formatting.plural(int(_number(threads)), 'thread')}: {under_way} requests were "
        f"under way, and {idle} of the CPU was idle"
    )


def _connections(why: Reason) -> str:
    return (
        f"the load: a closed loop of {int(_fact(why, 'connections')):,} connections leaves "
        f"{_percent(1 - _fact(why, 'busy'))} of the server's CPU idle, and nothing waited"
    )


def _unknown(why: Reason) -> str:
    return "not known"


def _by_cores(why: Reason) -> str:
    if "cores" in why.facts and int(_fact(why, "cores")) > 1 and _fact(why, "idle_cores") > 0.5:
        return f"-e workers={int(_fact(why, 'processes')) + 1}"
    return "-e profile=true shows what it computes; or give the server more cores"


_KEEPALIVE = "keepalive"
LIMITS: dict[str, Limit] = {
    "neighbour": Limit(
        _neighbour, _part("others' CPU"),
        "Programs that are not the lab's, or another machine on the same hardware, took CPU time.",
        _always("the same cell after stopping them"),
        _always("noisy_neighbour"),
    ),
    "client": Limit(
        _client, _part("client's CPU"),
        "The generator or the Python client could not do more: its CPU, its files or its ports.",
        lambda why: {
            "open_files": "-e open_files=<more>",
            "local_ports": "-e python_keepalive=true",
        }.get(str(why.facts["cause"]), "a lower rate, or several clients"),
        lambda why: {"open_files": "file_descriptors", "local_ports": "ephemeral_ports"}.get(
            str(why.facts["cause"]), ""
        ),
    ),
    "none": Limit(
        _none, lambda why: "the objective was missed",
        "The rate came back within the objective, without a failed request.",
        _always("-e slo=p99_ms=100,errors=0 finds the highest rate"),
    ),
    "nginx_connections": Limit(
        lambda why: (
            f"nginx's worker_connections: {int(_value(why)):,} times none was free, {_failed(why)}"
        ),
        _count("line of nginx on worker_connections"),
        "A worker of nginx had no connection left (worker_connections).",
        _always("a tuning profile with more worker_connections, or fewer -e connections="),
    ),
    "open_files": Limit(
        lambda why: f"nginx's open files: {int(_value(why)):,} times none was free, {_failed(why)}",
        _count("line of nginx on open files"),
        "A worker of nginx had no file descriptor left.",
        _always("a higher limit of open files, or fewer -e connections="),
        _always("file_descriptors"),
    ),
    "database_connections": Limit(
        lambda why: (
            f"the connections that the database admits: {int(_value(why)):,} of "
            f"{int(_number(why.limit)):,} were open, {_failed(why)}"
        ),
        lambda why: f"{int(_value(why)):,} of {int(_number(why.limit)):,} database connections",
        "PostgreSQL had as many connections as it admits, and requests failed.",
        _always("fewer -e workers= or a smaller pool_size, or a profile with more max_connections"),
        _always("connection_pool"),
    ),
    "syn_queue": Limit(
        lambda why: f"the SYN queue: {int(_value(why)):,} SYNs were dropped",
        _count("dropped SYN"),
        "The kernel dropped SYNs although the accept queue had room.",
        _always("-e backlog=<more>, or SYN cookies (net.ipv4.tcp_syncookies)"),
        _always("syn_queue"),
    ),
    "accept_queue": Limit(
        _queue, _count("refused connection"),
        "An accept queue was full while cores were idle, so that connections were dropped.",
        _always("-e backlog=<more>, net.core.somaxconn"),
        _always("listen_backlog"),
    ),
    "upstream_closed": Limit(
        lambda why: (
            f"connections that the application closed while nginx used them: {_failed(why)}"
        ),
        _count("connection closed by the application"),
        "The application closed kept connections while nginx sent a request on them.",
        _always("-e server_keepalive=75, longer than nginx keeps its connections"),
        _always("keepalive_timeouts"),
    ),
    "memory": Limit(
        _memory, _part("waits for memory"),
        "Processes waited for memory (PSI), or pages were swapped.",
        _always("fewer -e workers=, or a host with more memory"),
    ),
    "nginx_cpu": Limit(
        lambda why: _filled(why, "nginx"), _part("nginx's busiest process"),
        "nginx used most of full cores, or a worker of it filled one.",
        _always("-e reverse_proxy=none shows what nginx costs"),
    ),
    "worker_cpu": Limit(
        lambda why: _filled(why, "the application"), _part("the busiest worker"),
        "One worker of the application filled a core: its event loop, or Python's global lock.",
        _by_cores,
        lambda why: "event_loop_blocked" if why.facts.get("loop") else "",
    ),
    "database_cpu": Limit(
        _database_cpu, _part("PostgreSQL's busiest process"),
        "PostgreSQL used most of full cores, or a connection of it filled one.",
        lambda why: (
            "-e endpoint=agents_with_pool"
            if "sessions" in why.facts
            else "EXPLAIN of the longest statement in the report"
        ),
        lambda why: "connection_pool" if "sessions" in why.facts else "",
    ),
    "kernel_softirq": Limit(
        lambda why: (
            "the kernel's work on packets: softirq took "
            f"{_percent(max(_value(why), _fact(why, 'part')))} of a core"
        ),
        _part("softirq"),
        "The kernel's work on packets filled a core, or most of full cores.",
        _always("the interrupts of the network card spread over more cores"),
    ),
    "cores_busy": Limit(
        _cores_busy, _part("CPU"),
        "The server's cores were full, and no service had most of them.",
        lambda why: (
            "upstream_keepalive=true, which opens no connections"
            if why.facts.get("opened")
            else "-e profile=true shows what the application computes; or more cores"
        ),
        lambda why: _KEEPALIVE if why.facts.get("opened") else "",
    ),
    "delayed_ack": Limit(
        _delayed_ack,
        lambda why: f"{formatting.significant(_value(why), 2)} delayed acknowledgements an answer",
        "Answers waited for acknowledgements that the other side held back.",
        _always("TCP_NODELAY in the application, or one write for each answer"),
        _always("nagle"),
    ),
    "database_lock": Limit(
        _lock, _part("waits for locks"),
        "Most connections of the database in use waited for a lock.",
        _always("SELECT * FROM pg_locks WHERE NOT granted, during the load"),
    ),
    "pool_wait": Limit(
        _pool, _part("pool in use"),
        "All connections of the pool were in use, and more requests were under way.",
        _always("a larger pool_size in app.yml"),
        _always("connection_pool"),
    ),
    "disk": Limit(
        _disk, _part("waits for the disk"),
        "Requests waited for the disk of the database, most often for the flush of a commit.",
        _always("-e tuning=unflushed-commits shows how much"),
        _always("synchronous_commit"),
    ),
    "link": Limit(
        _link, _part("round trip"),
        "The link was full, far away, or lost segments.",
        lambda why: {
            "full": "a shorter queue or smaller answers; ping during the load shows the queue",
            "far": "-e network=lan",
        }.get(str(why.facts["cause"]), "ping and iperf3 over the link"),
        lambda why: {"full": "bufferbloat", "far": "slow_start_after_idle"}.get(
            str(why.facts["cause"]), ""
        ),
    ),
    "too_few_threads": Limit(
        _threads, lambda why: f"{formatting.significant(_value(why), 2)} requests in line",
        "Requests waited for a thread or worker of the application, and all of these waited too.",
        _always("-e threads=<twice as many>"),
        _always("knee"),
    ),
    "connections": Limit(
        _connections, _always(""),
        "A closed loop had too few connections to use the server up.",
        lambda why: f"-e connections={2 * int(_fact(why, 'connections'))}",
        _always("knee"),
    ),
    "unknown": Limit(
        _unknown, lambda why: "",
        "No check found the limit; the report names what was ruled out.",
        _always("-e profile=true shows what a worker waits for"),
    ),
}  # fmt: skip


def sentence(found: CellLimit) -> str:
    """Return the limit with its evidence. Raises ResultError for a code without words."""
    why = found.limit
    words = _word(why, lambda entry: entry.words(why))
    some = f" ({found.agree} of {found.of} repetitions)" if found.agree < found.of else ""
    if why.code == "none":
        return f"No limit was reached{some}: {words}."
    if why.code == "unknown":
        out = [text for text in map(_out, found.ruled_out) if text]
        return f"What limited it is not known{some}. Ruled out: {', '.join(out) or 'nothing'}."
    return f"Limited by {words}{some}."


def following(found: CellLimit) -> str:
    """Return what to measure next, in words."""
    return _word(found.limit, lambda entry: entry.following(found.limit))


def lesson(found: CellLimit) -> str:
    """Return the name of the lesson on the limit; empty for none."""
    return _word(found.limit, lambda entry: entry.lesson(found.limit))


def short(found: CellLimit) -> str:
    """Return the limit in a word or two."""
    return found.limit.code.replace("_", " ")


def whole(found: CellLimit) -> str:
    """Return the sentence, the next measurement and the lesson as one text."""
    parts = [sentence(found), f"Next: {following(found)}."]
    if name := lesson(found):
        parts.append(f"Lesson: ansible-playbook playbooks/lesson.yml -e lesson={name}")
    return " ".join(parts)


def ruled_out(found: CellLimit) -> list[tuple[str, str]]:
    """Return (code, evidence against it) of each limit that was ruled out."""
    return [(why.code, _out(why)) for why in found.ruled_out]


def _out(why: Reason) -> str:
    return "" if why.value is None else _word(why, lambda entry: entry.out(why))


def _word(why: Reason, words: Callable[[Limit], str]) -> str:
    try:
        return words(LIMITS[why.code])
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"limit {why.code!r} has no words: {error!r}") from error
