"""What every Python application does alike: the work behind the endpoints, and how it is served.

Put beside each application's app.py. The contract is files/endpoints.yml; the environment is set
by the role app_server: LAB_LISTEN (unix:<path> or <address>:<port>), LAB_BACKLOG (connections),
LAB_WORKERS (processes), LAB_EVENT_LOOP (asyncio or uvloop, where there is a choice), LAB_DATABASE
(connection string), LAB_POOL_SIZE (connections of one worker), LAB_UPSTREAM (URL), LAB_BOOK
(path), LAB_CPU_WORK (rounds of work that take 0.5 s).
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"

HELLO = "Hello, World!"
NAME = "Ada"
# What render_table shows: 6 rows of 4 columns.
TABLE = [[f"{row}.{column}" for column in range(1, 5)] for row in range(1, 7)]

COLUMNS = ("id", "first_name", "last_name", "extension", "email", "status", "since")
AGENTS = """
    SELECT a.id, a.first_name, a.last_name, a.extension, a.email, s.status, s.since
    FROM agents a JOIN login_status s ON s.agent_id = a.id
    ORDER BY a.id
"""

# The sub-select draws one number for the statement, not one for each row.
WRITE = """
    UPDATE visits SET visits = visits + 1
    WHERE id = (SELECT 1 + floor(random() * 10000)::integer)
    RETURNING id
"""

# TechEmpower's rules for /fortunes: no ORDER BY, and the added row is in no table.
FORTUNES = "SELECT id, message FROM fortune"
ADDED = (0, "Additional fortune added at request time.")

# Each takes its values in the order of their numbers, once.
READ = """
    SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count
    FROM items WHERE id = $1
"""
CREATE = """
    INSERT INTO items (id, name, category, price, quantity) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, category = excluded.category,
        price = excluded.price, quantity = excluded.quantity
    RETURNING id, name, category, price, quantity
"""
UPDATE = """
    UPDATE items SET name = $1, price = $2, quantity = $3 WHERE id = $4
    RETURNING id, name, price, quantity
"""
ITEM = ("id", "name", "category", "price", "quantity")
CHANGED = ("id", "name", "price", "quantity")

# Half of what is looked up is in the set.
_SET = {f"item {n}" for n in range(1000)}
_SOUGHT = [f"item {n}" for n in range(2000)] * 25
# The same delays in the same order after every start.
_DELAYS = random.Random(1)
LONGEST_BOOK_DELAY_S = 3


def dumps(value: Any) -> bytes:
    """JSON as the contract has it: without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def agents(rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Rows of the query AGENTS as the answer has them."""
    return {"agents": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}


def written(rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """Rows of the statement WRITE as the answer has them."""
    return {"written": len(rows)}


def fortunes(rows: Iterable[Sequence[Any]]) -> list[tuple[int, str]]:
    """Rows of the query FORTUNES and the added one, by their messages."""
    found = [(row[0], row[1]) for row in rows]
    found.append(ADDED)
    found.sort(key=lambda fortune: fortune[1])
    return found


def item(rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """Rows of the query READ as the answer has them; None without an item."""
    if not rows:
        return None
    *plain, active, tags, score, count = rows[0]
    return {
        **dict(zip(ITEM, plain, strict=True)),
        "active": active,
        # Some drivers give JSON as its text.
        "tags": json.loads(tags) if isinstance(tags, str) else tags,
        "rating": {"score": score, "count": count},
    }


def to_create(item: Mapping[str, Any]) -> list[Any]:
    """Values of the statement CREATE, of a request's JSON."""
    return [item[name] for name in ITEM]


def created(rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Rows of the statement CREATE as the answer has them."""
    return dict(zip(ITEM, rows[0], strict=True))


def to_update(item_id: int, item: Mapping[str, Any]) -> list[Any]:
    """Values of the statement UPDATE, of a request's JSON."""
    return [item["name"], item["price"], item["quantity"], item_id]


def updated(rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """Rows of the statement UPDATE as the answer has them; None without an item."""
    return dict(zip(CHANGED, rows[0], strict=True)) if rows else None


def lookup() -> int:
    """50,000 look-ups in a set of 1,000; how many were found."""
    found = 0
    for item in _SOUGHT:
        if item in _SET:
            found += 1
    return found


def cpu_work(rounds: int | None = None) -> int:
    """Keep one core busy for as many rounds as take 0.5 s on this host when it is idle.

    A fixed amount: whoever shares the core takes longer, which watching a clock would hide.
    """
    value = 1
    for _ in range(int(os.environ["LAB_CPU_WORK"]) if rounds is None else rounds):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


def count_off() -> None:
    """Print LAB_CPU_WORK: the rounds that take 0.5 s of this host's core.

    The quickest of several tries counts, as what disturbs one can only make it longer.
    """
    rounds = 1_000_000
    quickest = float("inf")
    for _ in range(10):
        before = time.process_time()
        cpu_work(rounds)
        quickest = min(quickest, time.process_time() - before)
    print(f"LAB_CPU_WORK={round(rounds * 0.5 / quickest)}")


def book() -> bytes:
    """The book's text, read from disk."""
    return Path(os.environ["LAB_BOOK"]).read_bytes()


def book_delay() -> int:
    """Seconds to wait before the book is given: 0, 1, 2 or 3, each as often."""
    return _DELAYS.randint(0, LONGEST_BOOK_DELAY_S)


def set_event_loop() -> None:
    """Make asyncio use the loop that LAB_EVENT_LOOP names."""
    if os.environ.get("LAB_EVENT_LOOP") == "uvloop":
        import asyncio

        import uvloop  # type: ignore[import-not-found]

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


def listen() -> socket.socket:
    """The socket that LAB_LISTEN names, listening."""
    where, backlog = os.environ["LAB_LISTEN"], int(os.environ["LAB_BACKLOG"])
    if where.startswith("unix:"):
        path = Path(where.removeprefix("unix:"))
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        # nginx runs as another user.
        path.chmod(0o666)
    else:
        address, _, port = where.rpartition(":")
        # asyncio switches Nagle's algorithm off where a socket names TCP as its protocol.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
    listener.listen(backlog)
    listener.setblocking(False)
    return listener


def ready() -> None:
    """Tell systemd that connections are accepted from now on."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + where[1:] if where.startswith("@") else where)
            notify.send(b"READY=1")


def serve(run: Callable[[socket.socket], None]) -> None:
    """Run ``run`` on one listening socket in LAB_WORKERS processes, for a server of one process.

    Where one of them ends unasked all end, so that none is missed.
    """
    listener = listen()
    workers = int(os.environ["LAB_WORKERS"])
    if workers == 1:
        ready()
        run(listener)
        return
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            run(listener)
            os._exit(1)
        children.append(child)

    asked = False

    def end(*_: object) -> None:
        nonlocal asked
        asked = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    ready()
    first, _ = os.wait()
    children.remove(first)
    if not asked:
        end()
        raise SystemExit(f"the worker {first} ended")
    while children:
        children.remove(os.wait()[0])
