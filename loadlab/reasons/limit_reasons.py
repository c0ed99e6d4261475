"""A limit's code is a row: words, what rules it out, meaning, next measurement and lesson.

loadlab/results/limits has the rules that find it.
"""

from typing import Literal, NamedTuple

from loadlab.model import Reason
from loadlab.reasons.row import Words, by, fact, limit, number, value, where, words_of
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


_OTHERS = (
    "somebody else's programs: they used [{value:percent} of the {host}'s ]CPU"
    "[, {worst:two} cores in the worst second]"
)
_OPENED = "[{opened:if}; each request opened a connection]"
# Who opened a connection for each request -> what opens none or cheaper ones, and the lesson of it.
_OPENS = {
    "clients": ("clients that keep their connections", "keepalive"),
    "http": ("upstream_keepalive=true, which opens no connections", "keepalive"),
    "uwsgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
    "fastcgi": ("-e transport=unix, whose connections cost less", "unix_or_tcp"),
}
_OPENS_LESS = {who: words for who, (words, _) in _OPENS.items()}
_LESSON_OF_OPENS = by("opened", {who: lesson for who, (_, lesson) in _OPENS.items()})
_QUEUE = "a shorter queue or smaller answers; ping during the load shows the queue"
_REFUSED = (
    "[, which holds {depth:,} connections]: it was full and refused {value:n connection}, "
    "while cores were idle"
)
_PARTS = {
    **SERVICES,
    "packets": "the kernel, for packets",
    "other_lanes": "the stacks beside it",
}
_DATABASE_WAITS = {"lock": "a lock", "disk": "the disk", "other": "something else"}


def _client(reason: Reason) -> str:
    return words_of(
        "the client: {shortage}[ for {failed:n request}]; its cores were {value:percent} busy",
        reason,
        shortage=_CLIENT[str(reason.facts["cause"])],
    )


def _kept(reason: Reason) -> str:
    slowest = str(reason.facts.get("latency", "p99"))
    slowest += {"at_most": " ≤", "at_least": " ≥"}.get(str(reason.facts.get("bound")), "")
    return words_of(
        "{rate:,g} [{visits:if}visits|requests]/s came back with {slowest} {value:ms} ms, within "
        "{limit:ms} ms, and {failed:n failed request}; the server's cores were {busy:percent} busy",
        reason,
        slowest=slowest,
    )


def _filled(reason: Reason, who: str) -> str:
    """Return the words for a service that filled a core, or most of all full cores."""
    cores, most = int(fact(reason, "cores")), limit(reason)
    if value(reason) < most:
        every, part = "core" if cores == 1 else "cores", min(1.0, fact(reason, "part"))
        gave = "the CPU time of {who}: {part:percent} of what the server's full {every} gave"
        return words_of(gave + _OPENED, reason, who=who, part=part, every=every)
    unit = "its threads took turns on one core, {process:percent} of the time"
    if fact(reason, "thread") >= most:
        unit = "its thread was on CPU {thread:percent} of the time"
    rest = "the server has no other core" if cores == 1 else "{idle_cores:two} cores were idle"
    waiting = reason.facts.get("waiting") or 0
    return words_of(
        f"one process of {who}: {unit}, {rest}"
        "[, {waiting:two} requests waited in the accept queue]"
        "[, and a thread held Python's lock (GIL) {gil:percent} of the time of its profile]"
        + _OPENED,
        reason,
        process=min(1.0, fact(reason, "process")),
        thread=min(1.0, fact(reason, "thread")),
        waiting=waiting if number(waiting) >= 1 else None,
    )


def _cores_busy(reason: Reason) -> str:
    cores = int(fact(reason, "cores"))
    parts = sorted(
        ((fact(reason, name), words) for name, words in _PARTS.items() if name in reason.facts),
        reverse=True,
    )
    used = ", ".join(f"{words} {formatting.percent(part)}" for part, words in parts if part >= 0.01)
    whole = "the server's core" if cores == 1 else f"the server's {cores} cores"
    words = "{whole}: {value:percent} busy[; of that {used}]"
    return words_of(words + _OPENED, reason, whole=whole, used=used)


def _by_cores(reason: Reason) -> str:
    many = "cores" in reason.facts and int(fact(reason, "cores")) > 1
    if many and fact(reason, "idle_cores") > 0.5:
        return f"-e workers={int(fact(reason, 'processes')) + 1}"
    return "-e profile=true shows what it computes; or give the server more cores"


def _softirq(reason: Reason) -> str:
    most = formatting.percent(max(value(reason), fact(reason, "part")))
    return f"the kernel's work on packets: softirq took {most} of a core"


# In the order in which they count: the first that is found is the limit.
LIMITS: dict[str, LimitRow] = {
    "neighbour": LimitRow(
        by("cause", {
            "steal": "CPU time of the {host}, which another machine on the same hardware took",
        }, by("host", {
            "server": _OTHERS + "[; a request's threads waited {wait_us:ms} ms for a core]",
        }, _OTHERS)),
        "others' CPU {value:percent}",
        "Programs that are not the lab's, or another machine on the same hardware, took CPU time.",
        "the same cell after stopping them",
        "noisy_neighbour",
    ),
    "client": LimitRow(
        _client, "client's CPU {value:percent}",
        "The generator or the Python client could not do more: its CPU, its files or its ports.",
        by("cause", {
            "open_files": "-e open_files=<more>", "local_ports": "-e python_keepalive=true",
        }, "a lower rate, or several clients"),
        by("cause", {"open_files": "file_descriptors", "local_ports": "ephemeral_ports"}),
    ),
    "none": LimitRow(
        _kept, "the objective was missed",
        "The rate was held with a p99 within 100 ms: at most 1 % of the requests due failed.",
        # A log has its own rates, and visitors have no search.
        where("speed", "-e speed={speed:2*g} sends the log twice as fast", where(
            "visits", "-e rate={rate:2*g} has twice as many visitors",
            "-e slo=p99_ms=100,errors=0 finds the highest rate",
        )),
        part_of=None,
    ),
    "memory": LimitRow(
        where("killed", "memory: the kernel killed a process {killed:n time} because none was left",
        where("swapped", "memory: {swapped:,} pages were swapped",
            "memory: processes waited for it {value:percent} of the time",
        )),
        "waits for memory {value:percent}",
        "Processes waited for memory (PSI), pages were swapped, or the kernel killed a process.",
        "fewer -e workers=, or a host or a unit (MemoryMax=) with more memory",
    ),
    "cpu_quota": LimitRow(
        by("service", {
            name: f"CPU time that {service} may not use: its thread was ready to run and had no "
            "core {value:percent} of the time, while the server's CPU was {busy:rest} idle"
            for name, service in SERVICES.items()
        }),
        "a thread's wait for a core {value:percent}",
        "A thread of a service was ready to run while a core was idle: a quota (CPUQuota=, "
        "cpu.max), or cores that it may not use (CPUAffinity=).",
        "the same cell without the quota: systemctl show <unit> has CPUQuotaPerSecUSec",
    ),
    "reverse_proxy_connections": LimitRow(
        "the reverse proxy's connections: {value:n time} none was free, "
            "{failed:n failed request}",
        "{value:n reverse proxy connection shortage}",
        "A process of the reverse proxy had no connection left (nginx: worker_connections).",
        "a tuning profile with more (nginx: worker_connections), or fewer -e connections=",
        part_of="reverse_proxy",
    ),
    "open_files": LimitRow(
        "the reverse proxy's open files: {value:n time} none was free, "
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
        by("service", {
            name: f"the accept queue of {service}{_REFUSED}" for name, service in SERVICES.items()
        }, f"an accept queue{_REFUSED}"),
        "{value:n refused connection}",
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
        by("opened", _OPENS_LESS, "-e reverse_proxy=none shows what it costs"),
        _LESSON_OF_OPENS,
        part_of="reverse_proxy",
    ),
    "worker_cpu": LimitRow(
        lambda reason: _filled(reason, "the application"), "the busiest worker {value:percent}",
        "One worker of the application filled a core: its event loop, or Python's global lock.",
        _by_cores,
        "[{loop:if}event_loop_blocked]",
        part_of="application",
    ),
    "database_cpu": LimitRow(
        lambda reason: words_of(
            "{filled}[; each request opened a connection to it ({sessions:two} for each)]",
            reason, filled=_filled(reason, "PostgreSQL"),
        ),
        "PostgreSQL's busiest process {value:percent}",
        "PostgreSQL used most of full cores, or a connection of it filled one.",
        "[{sessions:if}a pool of database connections in the application|EXPLAIN of the longest "
            "statement in the report]",
        "[{sessions:if}connection_pool]",
        part_of="database",
    ),
    "kernel_softirq": LimitRow(
        _softirq, "softirq {value:percent}",
        "The kernel's work on packets filled a core, or most of full cores.",
        "the interrupts of the network card spread over more cores",
    ),
    "cores_busy": LimitRow(
        _cores_busy, "CPU {value:percent}",
        "The server's cores were full, and no service had most of them.",
        by(
            "opened", _OPENS_LESS,
            "-e profile=true shows what the application computes; or more cores",
        ),
        _LESSON_OF_OPENS,
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
        lambda reason: words_of(
            "the pool of database connections: {value:percent} of {connections:,} were in use, for "
                "{under_way:two} requests under way[; they waited for {waited}]",
            reason, waited=_DATABASE_WAITS.get(str(reason.facts.get("wait"))),
        ),
        "pool in use {value:percent}",
        "All connections of the pool were in use, and more requests were under way.",
        "a larger pool_size in app.yml",
        "connection_pool",
        part_of="database",
    ),
    "disk": LimitRow(
        "the database's disk: requests waited for it {value:percent} of their time"
            "[, {flushes:,} flushes of its log]",
        "waits for the disk {value:percent}",
        "Requests waited for the disk of the database, most often for the flush of a commit.",
        "-e tuning=unflushed-commits shows how much",
        "synchronous_commit",
        part_of="database",
    ),
    "link": LimitRow(
        by("cause", {
            "full": "the link: {bits_per_second:bits}, {value:percent} of what iperf3 measured",
            "lost": "the link: segments were lost, and sent again after 200 ms or more",
            "queue": "the link: packets waited in a queue before it, for a round trip took "
                "{rtt_us:ms} ms, and the fastest request {fastest_us:ms} ms",
            "far": "the link: its round trip of {rtt_us:ms} ms (at least {least_rtt_us:ms} ms), "
                "{trips:two} times with windows of {window:.0f} segments, is {value:percent} of a "
                "request",
        }),
        "round trip {value:percent}",
        "The link was full, far away, had a long queue, or lost segments.",
        by("cause", {"full": _QUEUE, "queue": _QUEUE, "far": "-e network=lan"},
            "ping and iperf3 over the link"),
        by("cause", {
            "full": "bufferbloat", "queue": "bufferbloat", "far": "slow_start_after_idle",
        }),
    ),
    "too_few_threads": LimitRow(
        where("threads", "its {threads:n thread}: {under_way:two} requests were under way, and "
            "{busy:rest} of the CPU was idle",
            "its workers: {value:two} connections waited in the accept queue while {busy:rest} of "
            "the CPU was idle",
        ),
        "{value:two} requests in line",
        "Requests waited for a thread or worker of the application, and all of these waited too.",
        "-e threads=<twice as many>",
        "knee",
        part_of=None,
    ),
    "connections": LimitRow(
        where("twice", "the load: with twice its connections {twice:,.0f} right answers came per "
            "second, {value:percent} more than in the fastest repetition ({fastest:,.0f})",
        where("rate", "the load: all of its {connections:n connection} waited for answers while "
            "requests of {rate:,g}/s were due, and {busy:rest} of the server's CPU was idle",
            "the load: a closed loop of {connections:n connection} leaves {busy:rest} of the "
            "server's CPU idle, and nothing waited",
        )),
        where("twice", "twice the connections: {value:signed} right answers per second", ""),
        "The load had too few connections to use the server up: nothing waited while cores were "
        "idle, or a cross-check with twice as many answered more.",
        "-e connections={connections:2*.0f}",
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
