"""A limit's code is a row: words, what rules it out, meaning, next measurement and lesson.

loadlab/results/limits has the rules that find it.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from loadlab.model import Reason
from loadlab.reasons.row import Words, fact, limit, number, shown, value
from loadlab.run import formatting

SERVICES = {
    "reverse_proxy": "the reverse proxy",
    "application": "the application",
    "postgresql": "PostgreSQL",
}


class LimitThresholds(NamedTuple):
    """From which values on something is the limit of a cell."""

    cpu_full: float = 0.9  #: The server's cores are full from this part of their time.
    core_full: float = 0.9  #: A process or thread is full from this part of one core's time.
    cpu_share: float = 0.6  #: Part of the CPU time used, from which full cores are one service's.
    #: Part of the time of the requests, from which a wait of the database is the limit.
    waiting: float = 0.4
    #: A pool is used up from this part of the database connections, if ``crowd`` requests are under
    #: way for each of its connections; threads are, if as many are for each thread.
    in_use: float = 0.7
    crowd: float = 1.5
    #: Mean connections in the application's accept queue from which its threads are too few.
    queue: float = 1.0
    #: Part of the requests that were due, from which refused connections, dropped SYNs, failures or
    #: swapped pages are the limit.
    affected: float = 0.01
    pressure: float = 0.1  #: Part of the time in which a process waited for memory.
    #: Part of the time of the requests, from which a round trip of ``far_ms`` is the limit.
    round_trip: float = 0.3
    far_ms: float = 5.0  #: ms.
    #: Part of the time of the requests, from which a closed loop without any other limit is its
    #: own.
    explained: float = 0.5
    #: Growth of the right answers per second with twice the connections, above which a ceiling is
    #: the load's.
    doubled: float = 0.05


THRESHOLDS = LimitThresholds()


class LimitRow(NamedTuple):
    """A code."""

    words: Words  #: The sentence on a reason, after "limited by".
    out: Words  #: Why it was ruled out, from its evidence.
    meaning: str  #: Without the values of one case.
    following: Words  #: What to measure next.
    #: The name of the lesson on it; empty for none.
    lesson: Words = ""
    #: The part of the stack whose evidence it needs. A cell with that part and without the evidence
    #: names the code as unrecorded; None: no cell does.
    part_of: Literal["hosts", "reverse_proxy", "application", "database"] | None = "hosts"


_CLIENT = {
    "generator_cpu": "its CPU was full",
    "generator_stopped": "the generator stood still",
    "generator_stops": "the generator stood still for a part of the load",
    "own_median": "the generator sent requests late",
    "generator_late": "the generator sent requests late",
    "rate_missed": "the generator did not keep its schedule",
    "open_files": "it had no free file descriptor (EMFILE)",
    "local_ports": "it had no free local port (EADDRNOTAVAIL)",
}


def _neighbour(reason: Reason) -> str:
    host, wait = reason.facts["host"], reason.facts.get("wait_us")
    if reason.facts["cause"] == "steal":
        return f"another machine on the hardware of the {host}: its hypervisor took CPU time"
    mean = (
        f"{formatting.percent(value(reason))} of the {host}'s CPU"
        if reason.value is not None
        else "CPU"
    )
    waited = (
        f"; a request's threads waited {formatting.ms(number(wait))} ms for a core"
        if wait is not None and host == "server"
        else ""
    )
    worst = reason.facts.get("worst")
    most = f", {_cores(number(worst))} in the worst second" if worst is not None else ""
    return f"somebody else's programs: they used {mean}{most}{waited}"


def _client(reason: Reason) -> str:
    failed = reason.facts.get("failed")
    failures = f" for {int(number(failed)):,} requests" if failed is not None else ""
    return (
        f"the client: {_CLIENT[str(reason.facts['cause'])]}{failures}; its cores were "
        f"{formatting.percent(value(reason))} busy"
    )


def _link(reason: Reason) -> str:
    if reason.facts["cause"] == "full":
        used = formatting.bits(fact(reason, "bits_per_second"))
        return f"the link: {used}, {formatting.percent(value(reason))} of what iperf3 measured"
    if reason.facts["cause"] == "lost":
        return "the link: segments were lost, and sent again after 200 ms or more"
    if reason.facts["cause"] == "queue":
        rtt, fastest = (formatting.ms(fact(reason, name)) for name in ("rtt_us", "fastest_us"))
        return (
            f"the link: packets waited in a queue before it, for a round trip took {rtt} ms, and "
            f"the fastest request {fastest} ms"
        )
    rtt, least = (formatting.ms(fact(reason, name)) for name in ("rtt_us", "least_rtt_us"))
    return (
        f"the link: its round trip of {rtt} ms (at least {least} ms), "
        f"{formatting.significant(fact(reason, 'trips'), 2)} times with windows of "
        f"{fact(reason, 'window'):.0f} segments, is {formatting.percent(value(reason))} of a "
        "request"
    )


def _connections(reason: Reason) -> str:
    if "twice" in reason.facts:
        return (
            f"the load: with twice its connections {fact(reason, 'twice'):,.0f} right answers came "
            f"per second, {shown(reason, 'percent')} more than in the fastest repetition "
            f"({fact(reason, 'fastest'):,.0f})"
        )
    number = int(fact(reason, "connections"))
    idle = f"{formatting.percent(1 - fact(reason, 'busy'))} of the server's CPU"
    if "rate" in reason.facts:
        return (
            f"the load: all of its {formatting.plural(number, 'connection')} waited for answers "
            f"while requests of {fact(reason, 'rate'):,g}/s were due, and {idle} was idle"
        )
    return (
        f"the load: a closed loop of {number:,} connections leaves {idle} idle, and nothing waited"
    )


_QUEUE = "a shorter queue or smaller answers; ping during the load shows the queue"


_PARTS = {**SERVICES, "packets": "the kernel, for packets"}
# Who opened a connection for each request -> what opens none or cheaper ones, and the lesson of it.
_OPENS = {
    "clients": ("clients that keep their connections", "keepalive"),
    "http": ("upstream_keepalive=true, which opens no connections", "keepalive"),
    "uwsgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
    "fastcgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
}


def _kept(reason: Reason) -> str:
    unit = "visits/s" if "visits" in reason.facts else "requests/s"
    failed = formatting.plural(int(fact(reason, "failed")), "failed request")
    slowest = str(reason.facts.get("latency", "p99"))
    slowest += {"at_most": " ≤", "at_least": " ≥"}.get(str(reason.facts.get("bound")), "")
    return (
        f"{fact(reason, 'rate'):,g} {unit} came back with {slowest} "
        f"{formatting.ms(value(reason))} ms, within {formatting.ms(limit(reason))} ms, "
        f"and {failed}; the server's cores were "
        f"{formatting.percent(fact(reason, 'busy'))} busy"
    )


def _next_rate(reason: Reason) -> str:
    # A log has its own rates, and visitors have no search.
    if "speed" in reason.facts:
        return f"-e speed={2 * fact(reason, 'speed'):g} sends the log twice as fast"
    if "visits" in reason.facts:
        return f"-e rate={2 * fact(reason, 'rate'):g} has twice as many visitors"
    return "-e slo=p99_ms=100,errors=0 finds the highest rate"


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


_DATABASE_WAITS = {"lock": "a lock", "disk": "the disk", "other": "something else"}


def _queue(reason: Reason) -> str:
    service = reason.facts.get("service")
    where = f"the accept queue of {SERVICES[str(service)]}" if service else "an accept queue"
    depth = reason.facts.get("depth")
    room = f", which holds {int(number(depth)):,} connections" if depth is not None else ""
    return (
        f"{where}{room}: it was full, and {int(value(reason)):,} connections were refused, while "
        "cores were idle"
    )


def _pool(reason: Reason) -> str:
    wait = reason.facts.get("wait")
    waited = f"; they waited for {_DATABASE_WAITS[str(wait)]}" if wait else ""
    under_way = formatting.significant(fact(reason, "under_way"), 2)
    return (
        f"the pool of database connections: {formatting.percent(value(reason))} of "
        f"{int(fact(reason, 'connections')):,} were in use, for {under_way} requests under way"
        f"{waited}"
    )


def _disk(reason: Reason) -> str:
    flushes = reason.facts.get("flushes")
    counted = f", {int(number(flushes)):,} flushes of its log" if flushes else ""
    return (
        f"the database's disk: requests waited for it {formatting.percent(value(reason))} of their "
        f"time{counted}"
    )


def _threads(reason: Reason) -> str:
    idle = formatting.percent(1 - min(1.0, fact(reason, "busy")))
    threads = reason.facts.get("threads")
    if threads is None:
        return (
            f"its workers: {formatting.significant(value(reason), 2)} connections waited in the "
            f"accept queue while {idle} of the CPU was idle"
        )
    under_way = formatting.significant(fact(reason, "under_way"), 2)
    return (
        f"its {formatting.plural(int(number(threads)), 'thread')}: {under_way} requests were "
        f"under way, and {idle} of the CPU was idle"
    )


# In the order in which they count: the first that is found is the limit.
LIMITS: dict[str, LimitRow] = {
    "neighbour": LimitRow(
        _neighbour, "others' CPU {value:percent}",
        "Programs that are not the lab's, or another machine on the same hardware, took CPU time.",
        "the same cell after stopping them",
        "noisy_neighbour",
    ),
    "client": LimitRow(
        _client, "client's CPU {value:percent}",
        "The generator or the Python client could not do more: its CPU, its files or its ports.",
        lambda reason: {
            "open_files": "-e open_files=<more>",
            "local_ports": "-e python_keepalive=true",
        }.get(str(reason.facts["cause"]), "a lower rate, or several clients"),
        lambda reason: {"open_files": "file_descriptors", "local_ports": "ephemeral_ports"}.get(
            str(reason.facts["cause"]), ""
        ),
    ),
    "none": LimitRow(
        _kept,
        lambda reason: "the objective was missed",
        "The rate met the objective: at most 1 % of the requests due failed.",
        _next_rate,
        part_of=None,
    ),
    "memory": LimitRow(
        _memory, "waits for memory {value:percent}",
        "Processes waited for memory (PSI), pages were swapped, or the kernel killed a process.",
        "fewer -e workers=, or a host or a unit (MemoryMax=) with more memory",
    ),
    "cpu_quota": LimitRow(
        lambda reason: (
            f"CPU time that {SERVICES[str(reason.facts['service'])]} may not use: its thread was "
            f"ready to run and had no core {shown(reason, 'percent')} of the time, while the "
            f"server's CPU was {formatting.percent(1 - fact(reason, 'busy'))} idle"
        ),
        "a thread's wait for a core {value:percent}",
        "A thread of a service was ready to run while a core was idle: a quota (CPUQuota=, "
        "cpu.max), or cores that it may not use (CPUAffinity=).",
        "the same cell without the quota: systemctl show <unit> has CPUQuotaPerSecUSec",
    ),
    "reverse_proxy_connections": LimitRow(
        "the reverse proxy's connections: {value:,.0f} times none was free, "
            "{failed:n failed request}",
        "{value:n reverse proxy connection shortage}",
        "A process of the reverse proxy had no connection left (nginx: worker_connections).",
        "a tuning profile with more (nginx: worker_connections), or fewer -e connections=",
        part_of="reverse_proxy",
    ),
    "open_files": LimitRow(
        "the reverse proxy's open files: {value:,.0f} times none was free, "
            "{failed:n failed request}",
        "{value:n reverse proxy file shortage}",
        "A process of the reverse proxy had no file descriptor left.",
        "a higher limit of open files, or fewer -e connections=",
        "file_descriptors",
        part_of="reverse_proxy",
    ),
    "database_connections": LimitRow(
        "the connections that the database admits: all {limit:,.0f} were open, "
            "{failed:n failed request}",
        "{value:,.0f} of {limit:,.0f} database connections",
        "PostgreSQL had as many connections as it admits, and requests failed.",
        "fewer -e workers= or a smaller pool_size, or a profile with more max_connections",
        "connection_pool",
        part_of="database",
    ),
    "syn_queue": LimitRow(
        "the SYN queue: {value:,.0f} SYNs were dropped",
        "{value:n dropped SYN}",
        "The kernel dropped SYNs although the accept queue had room.",
        "-e backlog=<more>, or SYN cookies (net.ipv4.tcp_syncookies)",
        "syn_queue",
    ),
    "accept_queue": LimitRow(
        _queue, "{value:n refused connection}",
        "An accept queue was full while cores were idle, so that connections were dropped.",
        "-e backlog=<more>, net.core.somaxconn",
        "listen_backlog",
    ),
    "upstream_closed": LimitRow(
        "connections that the application closed while the reverse proxy used them: "
            "{failed:n failed request}",
        "{value:n application-closed connection}",
        "The application closed kept connections while the reverse proxy sent a request on them.",
        "-e server_keepalive=75, longer than the reverse proxy keeps its connections",
        "keepalive_timeouts",
        part_of="reverse_proxy",
    ),
    "reverse_proxy_cpu": LimitRow(
        lambda reason: _filled(reason, "the reverse proxy"),
        "the reverse proxy's busiest process {value:percent}",
        "The reverse proxy used most of full cores, or a process of it filled one.",
        _opens("-e reverse_proxy=none shows what it costs"),
        _lesson_of_opens,
        part_of="reverse_proxy",
    ),
    "worker_cpu": LimitRow(
        lambda reason: _filled(reason, "the application"), "the busiest worker {value:percent}",
        "One worker of the application filled a core: its event loop, or Python's global lock.",
        _by_cores,
        lambda reason: "event_loop_blocked" if reason.facts.get("loop") else "",
        part_of="application",
    ),
    "database_cpu": LimitRow(
        _database_cpu, "PostgreSQL's busiest process {value:percent}",
        "PostgreSQL used most of full cores, or a connection of it filled one.",
        lambda reason: (
            "a pool of database connections in the application"
            if "sessions" in reason.facts
            else "EXPLAIN of the longest statement in the report"
        ),
        lambda reason: "connection_pool" if "sessions" in reason.facts else "",
        part_of="database",
    ),
    "kernel_softirq": LimitRow(
        lambda reason: (
            "the kernel's work on packets: softirq took "
            f"{formatting.percent(max(value(reason), fact(reason, 'part')))} of a core"
        ),
        "softirq {value:percent}",
        "The kernel's work on packets filled a core, or most of full cores.",
        "the interrupts of the network card spread over more cores",
    ),
    "cores_busy": LimitRow(
        _cores_busy, "CPU {value:percent}",
        "The server's cores were full, and no service had most of them.",
        _opens("-e profile=true shows what the application computes; or more cores"),
        _lesson_of_opens,
    ),
    "delayed_ack": LimitRow(
        "delayed acknowledgements: {value:two} for each answer, which took {mean_us:ms} ms, "
            "while cores were idle",
        "{value:two} delayed acknowledgements an answer",
        "Answers waited for acknowledgements that the other side held back.",
        "TCP_NODELAY in the application, or one write for each answer",
        "nagle",
        part_of=None,
    ),
    "database_lock": LimitRow(
        "a lock in the database: {sessions:two} of {in_use:two} connections in use waited for "
            "one",
        "waits for locks {value:percent}",
        "Most connections of the database in use waited for a lock.",
        "SELECT * FROM pg_locks WHERE NOT granted, during the load",
        part_of="database",
    ),
    "pool_wait": LimitRow(
        _pool, "pool in use {value:percent}",
        "All connections of the pool were in use, and more requests were under way.",
        "a larger pool_size in app.yml",
        "connection_pool",
        part_of="database",
    ),
    "disk": LimitRow(
        _disk, "waits for the disk {value:percent}",
        "Requests waited for the disk of the database, most often for the flush of a commit.",
        "-e tuning=unflushed-commits shows how much",
        "synchronous_commit",
        part_of="database",
    ),
    "link": LimitRow(
        _link, "round trip {value:percent}",
        "The link was full, far away, had a long queue, or lost segments.",
        lambda reason: {"full": _QUEUE, "queue": _QUEUE, "far": "-e network=lan"}.get(
            str(reason.facts["cause"]), "ping and iperf3 over the link"
        ),
        lambda reason: {
            "full": "bufferbloat",
            "queue": "bufferbloat",
            "far": "slow_start_after_idle",
        }.get(str(reason.facts["cause"]), ""),
    ),
    "too_few_threads": LimitRow(
        _threads, "{value:two} requests in line",
        "Requests waited for a thread or worker of the application, and all of these waited too.",
        "-e threads=<twice as many>",
        "knee",
        part_of=None,
    ),
    "connections": LimitRow(
        _connections,
        lambda reason: (
            f"twice the connections: {formatting.signed(value(reason))} right answers per second"
            if "twice" in reason.facts
            else ""
        ),
        "The load had too few connections to use the server up: nothing waited while cores were "
        "idle, or a cross-check with twice as many answered more.",
        lambda reason: f"-e connections={2 * int(fact(reason, 'connections'))}",
        "knee",
        part_of=None,
    ),
    "unknown": LimitRow(
        "not known", "",
        "No check found the limit; the report names what was ruled out.",
        "-e profile=true shows what a worker waits for",
        part_of=None,
    ),
}  # fmt: skip
