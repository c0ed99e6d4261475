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


def _failed(reason: Reason) -> str:
    return formatting.plural(int(fact(reason, "failed")), "failed request")


def _queue(reason: Reason) -> str:
    service = reason.facts.get("service")
    where = f"the accept queue of {SERVICES[str(service)]}" if service else "an accept queue"
    depth = reason.facts.get("depth")
    room = f", which holds {int(number(depth)):,} connections" if depth is not None else ""
    return (
        f"{where}{room}: it was full, and {int(value(reason)):,} connections were refused, while "
        "cores were idle"
    )


def _delayed_ack(reason: Reason) -> str:
    return (
        f"delayed acknowledgements: {formatting.significant(value(reason), 2)} for each answer, "
        f"which took {formatting.ms(fact(reason, 'mean_us'))} ms, while cores were idle"
    )


def _lock(reason: Reason) -> str:
    return (
        f"a lock in the database: {formatting.significant(fact(reason, 'sessions'), 2)} of "
        f"{formatting.significant(fact(reason, 'in_use'), 2)} connections in use waited for one"
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


LIMITS: Limits = {
    "nginx_connections": Limit(
        lambda reason: (
            f"nginx's worker_connections: {int(value(reason)):,} times none was free, "
            f"{_failed(reason)}"
        ),
        count("line of nginx on worker_connections"),
        "A worker of nginx had no connection left (worker_connections).",
        always("a tuning profile with more worker_connections, or fewer -e connections="),
    ),
    "open_files": Limit(
        lambda reason: (
            f"nginx's open files: {int(value(reason)):,} times none was free, "
            f"{_failed(reason)}"
        ),
        count("line of nginx on open files"),
        "A worker of nginx had no file descriptor left.",
        always("a higher limit of open files, or fewer -e connections="),
        always("file_descriptors"),
    ),
    "database_connections": Limit(
        lambda reason: (
            f"the connections that the database admits: all {int(number(reason.limit)):,} were "
            "open, "
            f"{_failed(reason)}"
        ),
        lambda reason: (
            f"{int(value(reason)):,} of {int(number(reason.limit)):,} database "
            "connections"
        ),
        "PostgreSQL had as many connections as it admits, and requests failed.",
        always("fewer -e workers= or a smaller pool_size, or a profile with more max_connections"),
        always("connection_pool"),
    ),
    "syn_queue": Limit(
        lambda reason: f"the SYN queue: {int(value(reason)):,} SYNs were dropped",
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
        lambda reason: (
            f"connections that the application closed while nginx used them: {_failed(reason)}"
        ),
        count("connection closed by the application"),
        "The application closed kept connections while nginx sent a request on them.",
        always("-e server_keepalive=75, longer than nginx keeps its connections"),
        always("keepalive_timeouts"),
    ),
    "delayed_ack": Limit(
        _delayed_ack,
        lambda reason: (
            f"{formatting.significant(value(reason), 2)} delayed acknowledgements an "
            "answer"
        ),
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
        _threads, lambda reason: f"{formatting.significant(value(reason), 2)} requests in line",
        "Requests waited for a thread or worker of the application, and all of these waited too.",
        always("-e threads=<twice as many>"),
        always("knee"),
    ),
}  # fmt: skip
