"""Limits that requests waited for although cores were idle: queues, connections, threads, locks."""

from loadlab.reasons.limit_reasons import THRESHOLDS
from loadlab.results.limits.limit_evidence import RESENT_US, Check, Evidence, LimitCheck, check

# Linux holds an acknowledgement back for 40 ms (TCP_DELACK_MIN), at most 200 ms (TCP_DELACK_MAX).
_HELD_US = (35_000, 250_000)
_HELD_LEAST_US = 40_000
_EACH = 0.5  # held acknowledgements for each answer


def _logged(code: str, kind: str, evidence: Evidence) -> Check | None:
    """Look for lines of the reverse proxy's error log; None where it was not recorded."""
    if evidence.server.reverse_proxy is None:
        return None
    lines = evidence.server.reverse_proxy.errors.get(kind, 0)
    return check(code, evidence.affects(lines), lines, failed=evidence.failed)


def reverse_proxy_connections(evidence: Evidence) -> Check | None:
    """Look for a reverse proxy whose processes had no connection left."""
    return _logged("reverse_proxy_connections", "connections", evidence)


def open_files(evidence: Evidence) -> Check | None:
    """Look for a reverse proxy without a free file descriptor."""
    shortage = _logged("open_files", "open_files", evidence)
    # nginx then accepts nothing for half a second, so a line is of all connections that wait.
    connections = THRESHOLDS.waiting * evidence.connections
    stuck = (evidence.waiting("reverse_proxy") or 0.0) >= connections
    return shortage and shortage._replace(
        is_limit=shortage.is_limit or bool(shortage.evidence.value and stuck)
    )


def upstream_closed(evidence: Evidence) -> Check | None:
    """Look for connections that the application closed while the reverse proxy used them."""
    seen = _logged("upstream_closed", "upstream_closed", evidence)
    return seen and seen._replace(is_limit=seen.is_limit and evidence.failed > 0)


def database_connections(evidence: Evidence) -> Check | None:
    """Look for a database that refused connections, as it had as many as it admits."""
    if evidence.database is None:
        return None
    most, limit = evidence.database.connections_max, evidence.database.connections_limit
    return check(
        "database_connections",
        most >= limit and evidence.affects(evidence.failed),
        most,
        limit,
        failed=evidence.failed,
    )


def syn_queue(evidence: Evidence) -> Check:
    """Look for SYNs that were dropped, but not for a full accept queue."""
    tcp = evidence.server.tcp
    dropped = tcp.listen_drops - tcp.listen_overflows
    return check(
        "syn_queue", evidence.affects(dropped, RESENT_US), dropped, cookies=tcp.syn_cookies
    )


def accept_queue(evidence: Evidence) -> Check | None:
    """Look for an accept queue that was full while cores were idle."""
    refused = evidence.server.tcp.listen_overflows
    queues = evidence.server.accept_queues or []
    full = [
        queue
        for queue in queues
        if max((depth or 0 for depth in queue.depth), default=0) > queue.limit
    ]
    log = evidence.server.reverse_proxy
    again = log.errors.get("accept_queue", 0) if log else 0
    shortest = min((queue.limit for queue in full), default=None)
    return check(
        "accept_queue",
        not evidence.full and evidence.affects(refused + again, RESENT_US),
        refused + again,
        service=full[0].service if full else None,
        depth=shortest,
    )


def delayed_ack(evidence: Evidence) -> Check | None:
    """Look for answers that waited for an acknowledgement that was held back."""
    held, answers, mean = evidence.server.tcp.delayed_acks, evidence.rep.responses, evidence.mean_us
    if held is None or not answers or mean is None:
        return None
    low, high = _HELD_US
    held_s = held / answers
    # Slow answers of unequal length hold some back as well, which nobody waits for.
    is_most = held_s >= _EACH and held_s * _HELD_LEAST_US >= mean / 2
    return check(
        "delayed_ack", is_most and low <= mean <= high and not evidence.full, held_s, _EACH,
        mean_us=mean,
    )  # fmt: skip


def too_few_threads(evidence: Evidence) -> Check | None:
    """Look for requests that waited for a thread of the application, all of which waited too."""
    queue = evidence.waiting("application")
    if evidence.threads is not None and evidence.under_way is not None:
        per_thread = evidence.under_way / evidence.threads
        return check(
            "too_few_threads",
            not evidence.full and per_thread >= THRESHOLDS.crowd,
            per_thread,
            THRESHOLDS.crowd,
            threads=evidence.threads,
            under_way=evidence.under_way,
            busy=evidence.busy,
        )
    if queue is None or not evidence.under_way:
        return None
    # The others under way may wait for something else; and where connections waited for a part of
    # the load alone, the workers stood still in that.
    many = queue >= THRESHOLDS.queue and queue >= THRESHOLDS.waiting * evidence.under_way
    many = many and evidence.waiting_seconds("application") > 0.5
    return check(
        "too_few_threads",
        not evidence.full and many,
        queue,
        THRESHOLDS.queue,
        under_way=evidence.under_way,
        busy=evidence.busy,
    )


def database(evidence: Evidence) -> list[Check]:
    """Look what the database's connections waited for: a lock, each other, a disk."""
    if evidence.in_use is None or evidence.under_way is None or evidence.database is None:
        return []
    open_ = evidence.database.connections_max
    wait = max(("lock", "disk", "other"), key=lambda name: evidence.waits[name])
    pool_used = evidence.in_use / open_ if open_ else 0.0
    crowded = pool_used >= THRESHOLDS.in_use and evidence.under_way >= THRESHOLDS.crowd * open_
    parts = {name: mean / (evidence.under_way or 1) for name, mean in evidence.waits.items()}

    def waiting(code: str, name: str, pooled: bool) -> Check:
        """One wait is the limit if it is much of a request's time, or of a crowded pool's."""
        much = parts[name] >= THRESHOLDS.waiting
        most = evidence.waits[name] >= _EACH * evidence.in_use if evidence.in_use else False
        return check(
            code,
            not evidence.full and most and (much or (pooled and crowded)),
            parts[name],
            THRESHOLDS.waiting,
            sessions=evidence.waits[name],
            in_use=evidence.in_use,
            flushes=evidence.database.wal_syncs if code == "disk" and evidence.database else None,
        )

    return [
        waiting("database_lock", "lock", True),
        check(
            "pool_wait",
            not evidence.full and crowded,
            pool_used,
            THRESHOLDS.in_use,
            connections=open_,
            under_way=evidence.under_way,
            wait=wait if evidence.waits[wait] else None,
        ),
        waiting("disk", "disk", False),
    ]


RULES: tuple[LimitCheck, ...] = (
    reverse_proxy_connections,
    open_files,
    database_connections,
    syn_queue,
    accept_queue,
    upstream_closed,
    delayed_ack,
    database,
    too_few_threads,
)
