"""Limits that requests waited for although cores were idle: queues, connections, threads, locks."""

from __future__ import annotations

from loadlab.results.limits.limit_evidence import Check, Evidence, check

# Linux holds an acknowledgement back for 40 ms (TCP_DELACK_MIN), at most 200 ms (TCP_DELACK_MAX).
_HELD_US = (35_000, 250_000)
_EACH = 0.5  # held acknowledgements for each answer


def _logged(code: str, kind: str, found: Evidence) -> Check | None:
    """Look for lines of nginx's error log; None where it was not recorded."""
    if found.server.nginx is None:
        return None
    lines = found.server.nginx.errors.get(kind, 0)
    return check(code, lines > 0, lines, 0, failed=found.failed)


def nginx_connections(found: Evidence) -> Check | None:
    """Look for an nginx whose workers had no connection left."""
    return _logged("nginx_connections", "worker_connections", found)


def open_files(found: Evidence) -> Check | None:
    """Look for an nginx without a free file descriptor."""
    return _logged("open_files", "open_files", found)


def upstream_closed(found: Evidence) -> Check | None:
    """Look for connections that the application closed while nginx used them."""
    seen = _logged("upstream_closed", "upstream_closed", found)
    if seen is None or not seen.found:
        return seen
    return seen._replace(found=found.failed > 0)


def database_connections(found: Evidence) -> Check | None:
    """Look for a database that refused connections, as it had as many as it admits."""
    if found.database is None or found.database.connections_limit is None:
        return None
    most, limit = found.database.connections_max, found.database.connections_limit
    return check(
        "database_connections", most >= limit and found.failed > 0, most, limit, failed=found.failed
    )


def syn_queue(found: Evidence) -> Check:
    """Look for SYNs that were dropped, but not for a full accept queue."""
    tcp = found.server.tcp
    dropped = tcp.listen_drops - tcp.listen_overflows
    return check("syn_queue", dropped > 0, dropped, 0, cookies=tcp.syn_cookies)


def accept_queue(found: Evidence) -> Check | None:
    """Look for an accept queue that was full while cores were idle."""
    refused = found.server.tcp.listen_overflows
    queues = found.server.accept_queues or []
    full = [one for one in queues if max((d or 0 for d in one.depth), default=0) > one.limit]
    again = found.server.nginx.errors.get("accept_queue", 0) if found.server.nginx else 0
    shortest = min((one.limit for one in full), default=None)
    return check(
        "accept_queue",
        not found.full and (refused > 0 or bool(full) or again > 0),
        refused + again,
        0,
        service=full[0].service if full else None,
        depth=shortest,
    )


def delayed_ack(found: Evidence) -> Check | None:
    """Look for answers that waited for an acknowledgement that was held back."""
    held, answers, mean = found.server.tcp.delayed_acks, found.rep.responses, found.mean_us
    if not answers or mean is None:
        return None
    low, high = _HELD_US
    each = held / answers
    return check(
        "delayed_ack", each >= _EACH and low <= mean <= high and not found.full, each, _EACH,
        mean_us=mean,
    )  # fmt: skip


def too_few_threads(found: Evidence) -> Check | None:
    """Look for requests that waited for a thread of the application, all of which waited too."""
    rule, queue = found.rule, found.waiting("application")
    if found.threads is not None and found.under_way is not None:
        each = found.under_way / found.threads
        return check(
            "too_few_threads",
            not found.full and each >= rule.limit_crowd,
            each,
            rule.limit_crowd,
            threads=found.threads,
            under_way=found.under_way,
            busy=found.busy,
        )
    if queue is None or not found.under_way:
        return None
    # The others under way may wait for something else.
    many = queue >= rule.limit_queue and queue >= rule.limit_waiting * found.under_way
    return check(
        "too_few_threads",
        not found.full and many,
        queue,
        rule.limit_queue,
        under_way=found.under_way,
        busy=found.busy,
    )


def database(found: Evidence) -> list[Check]:
    """Look what the database's connections waited for: a lock, each other, a disk."""
    if found.in_use is None or found.under_way is None or found.database is None:
        return []
    rule, open_ = found.rule, found.database.connections_max
    wait = max(("lock", "disk", "other"), key=lambda name: found.waits[name])
    pool_used = found.in_use / open_ if open_ else 0.0
    crowded = pool_used >= rule.limit_in_use and found.under_way >= rule.limit_crowd * open_
    parts = {name: mean / (found.under_way or 1) for name, mean in found.waits.items()}

    def waiting(code: str, name: str, pooled: bool) -> Check:
        """One wait is the limit if it is much of a request's time, or of a crowded pool's."""
        much = parts[name] >= rule.limit_waiting
        most = found.waits[name] >= _EACH * found.in_use if found.in_use else False
        return check(
            code,
            not found.full and most and (much or (pooled and crowded)),
            parts[name],
            rule.limit_waiting,
            sessions=found.waits[name],
            in_use=found.in_use,
            flushes=found.database.wal_syncs if code == "disk" and found.database else None,
        )

    return [
        waiting("database_lock", "lock", True),
        check(
            "pool_wait",
            not found.full and crowded,
            pool_used,
            rule.limit_in_use,
            connections=open_,
            under_way=found.under_way,
            wait=wait if found.waits[wait] else None,
        ),
        waiting("disk", "disk", False),
    ]
