"""Words for what requests waited for although cores were idle."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.report.words.limits.wording import (
    SERVICES,
    Limit,
    Limits,
    always,
    count,
    fact,
    number,
    part,
    value,
)
from loadlab.run import formatting

_DATABASE_WAITS = {"lock": "a lock", "disk": "the disk", "other": "something else"}


def _failed(why: Reason) -> str:
    return formatting.plural(int(fact(why, "failed")), "failed request")


def _queue(why: Reason) -> str:
    service = why.facts.get("service")
    where = f"the accept queue of {SERVICES[str(service)]}" if service else "an accept queue"
    depth = why.facts.get("depth")
    room = f", which holds {int(number(depth)):,} connections" if depth is not None else ""
    return (
        f"{where}{room}: it was full, and {int(value(why)):,} connections were refused, while "
        "cores were idle"
    )


def _delayed_ack(why: Reason) -> str:
    return (
        f"delayed acknowledgements: {formatting.significant(value(why), 2)} for each answer, "
        f"which took {formatting.ms(fact(why, 'mean_us'))} ms, while cores were idle"
    )


def _lock(why: Reason) -> str:
    return (
        f"a lock in the database: {formatting.significant(fact(why, 'sessions'), 2)} of "
        f"{formatting.significant(fact(why, 'in_use'), 2)} connections in use waited for one"
    )


def _pool(why: Reason) -> str:
    wait = why.facts.get("wait")
    waited = f"; they waited for {_DATABASE_WAITS[str(wait)]}" if wait else ""
    under_way = formatting.significant(fact(why, "under_way"), 2)
    return (
        f"the pool of database connections: {formatting.percent(value(why))} of "
        f"{int(fact(why, 'connections')):,} were in use, for {under_way} requests under way"
        f"{waited}"
    )


def _disk(why: Reason) -> str:
    flushes = why.facts.get("flushes")
    counted = f", {int(number(flushes)):,} flushes of its log" if flushes else ""
    return (
        f"the database's disk: requests waited for it {formatting.percent(value(why))} of their "
        f"time{counted}"
    )


def _threads(why: Reason) -> str:
    idle = formatting.percent(1 - min(1.0, fact(why, "busy")))
    threads = why.facts.get("threads")
    if threads is None:
        return (
            f"its workers: {formatting.significant(value(why), 2)} connections waited in the "
            f"accept queue while {idle} of the CPU was idle"
        )
    under_way = formatting.significant(fact(why, "under_way"), 2)
    return (
        f"its {formatting.plural(int(number(threads)), 'thread')}: {under_way} requests were "
        f"under way, and {idle} of the CPU was idle"
    )


LIMITS: Limits = {
    "nginx_connections": Limit(
        lambda why: (
            f"nginx's worker_connections: {int(value(why)):,} times none was free, {_failed(why)}"
        ),
        count("line of nginx on worker_connections"),
        "A worker of nginx had no connection left (worker_connections).",
        always("a tuning profile with more worker_connections, or fewer -e connections="),
    ),
    "open_files": Limit(
        lambda why: f"nginx's open files: {int(value(why)):,} times none was free, {_failed(why)}",
        count("line of nginx on open files"),
        "A worker of nginx had no file descriptor left.",
        always("a higher limit of open files, or fewer -e connections="),
        always("file_descriptors"),
    ),
    "database_connections": Limit(
        lambda why: (
            f"the connections that the database admits: all {int(number(why.limit)):,} were open, "
            f"{_failed(why)}"
        ),
        lambda why: f"{int(value(why)):,} of {int(number(why.limit)):,} database connections",
        "PostgreSQL had as many connections as it admits, and requests failed.",
        always("fewer -e workers= or a smaller pool_size, or a profile with more max_connections"),
        always("connection_pool"),
    ),
    "syn_queue": Limit(
        lambda why: f"the SYN queue: {int(value(why)):,} SYNs were dropped",
        count("dropped SYN"),
        "The kernel dropped SYNs although the accept queue had room.",
        always("-e backlog=<more>, or SYN cookies (net.ipv4.tcp_syncookies)"),
        always("syn_queue"),
    ),
    "accept_queue": Limit(
        _queue, count("refused connection"),
        "An accept queue was full while cores were idle, so that connections were dropped.",
        always("-e backlog=<more>, net.core.somaxconn"),
        always("listen_backlog"),
    ),
    "upstream_closed": Limit(
        lambda why: (
            f"connections that the application closed while nginx used them: {_failed(why)}"
        ),
        count("connection closed by the application"),
        "The application closed kept connections while nginx sent a request on them.",
        always("-e server_keepalive=75, longer than nginx keeps its connections"),
        always("keepalive_timeouts"),
    ),
    "delayed_ack": Limit(
        _delayed_ack,
        lambda why: f"{formatting.significant(value(why), 2)} delayed acknowledgements an answer",
        "Answers waited for acknowledgements that the other side held back.",
        always("TCP_NODELAY in the application, or one write for each answer"),
        always("nagle"),
    ),
    "database_lock": Limit(
        _lock, part("waits for locks"),
        "Most connections of the database in use waited for a lock.",
        always("SELECT * FROM pg_locks WHERE NOT granted, during the load"),
    ),
    "pool_wait": Limit(
        _pool, part("pool in use"),
        "All connections of the pool were in use, and more requests were under way.",
        always("a larger pool_size in app.yml"),
        always("connection_pool"),
    ),
    "disk": Limit(
        _disk, part("waits for the disk"),
        "Requests waited for the disk of the database, most often for the flush of a commit.",
        always("-e tuning=unflushed-commits shows how much"),
        always("synchronous_commit"),
    ),
    "too_few_threads": Limit(
        _threads, lambda why: f"{formatting.significant(value(why), 2)} requests in line",
        "Requests waited for a thread or worker of the application, and all of these waited too.",
        always("-e threads=<twice as many>"),
        always("knee"),
    ),
}  # fmt: skip
