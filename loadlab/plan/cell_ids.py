"""The ids of cells and stacks. They name folders; nothing reads a part of one."""

import hashlib
import json
from collections.abc import Iterable

from msgspec import to_builtins

from loadlab.model import NGINX, Arrivals, Cell, Load, Purpose
from loadlab.run.formatting import plain


def stack_id(cell: Cell) -> str:
    """Return the id of the cell's stack, a part of the cell's own."""
    proxy = cell.reverse_proxy
    parts = [
        cell.framework,
        f"app{_digest(cell.app)[:8]}" if cell.app else None,
        cell.server,
        cell.transport,
        cell.protocol,
        # A dotted name is the worker class of the event loop, which the id already names.
        cell.worker_class if "." not in (cell.worker_class or "") else None,
        cell.event_loop,
        f"{cell.workers}workers" if cell.workers else None,
        f"{cell.threads}threads" if cell.threads not in (None, 1) else None,
        f"keep{cell.server_keepalive_s}s" if cell.server_keepalive_s else None,
        cell.driver,
        f"python{cell.python}" if cell.python else None,
        None if cell.upstream_keepalive else "unkept",
        None if proxy == NGINX else "direct" if cell.direct else f"by-{proxy}",
        f"b{cell.backlog}",
    ]
    return _joined(parts)


def cell_id(cell: Cell, purpose: Purpose) -> str:
    """Return the id of a cell for this purpose; it names every part of the cell's definition."""
    return _joined(
        [
            *(stack_id(cell), _endpoint(cell), cell.tuning, cell.network, *_load(cell.load)),
            cell.variant,
            None if purpose == "measure" else purpose,
        ]
    )


def _joined(parts: Iterable[str | None]) -> str:
    """Return an id of the parts; an absent part is left out."""
    return "-".join(filter(None, parts))


def _endpoint(cell: Cell) -> str:
    """Return a part for the endpoint, short enough for a folder's name where there are many."""
    if cell.load.replay:
        return f"log{cell.load.replay.log_sha256[:8]}"
    if cell.load.session:
        steps = to_builtins(cell.load.session)
        return f"session{len(steps)}-{_json_digest(steps)}"
    kinds = cell.kinds
    return cell.endpoint if len(kinds) == 1 else f"mix{len(kinds)}-{_digest(cell.endpoint)[:8]}"


def _load(load: Load) -> list[str | None]:
    replay, stall = load.replay, load.stall
    query = "-query" if replay and replay.query else ""
    return [
        load.generator,
        *(_batch(load) if load.mode == "batch" else _timed(load)),
        _arrivals(load.arrivals) if load.arrivals else None,
        f"x{plain(replay.speed)}{query}" if replay else None,
        f"timeout{plain(load.timeout_s)}s" if load.timeout_s is not None else None,
        "unkept" if load.keepalive is False else None,
        f"burst{plain(load.burst_every_s)}s" if load.burst_every_s is not None else None,
        ("http2" if load.http2 else "tls") if load.tls else None,
        f"headers{_json_digest(load.headers)}" if load.headers else None,
        "lanes" if load.lanes is not None else None,
        f"{load.clients}clients" if load.clients is not None else None,
        f"stall{plain(stall.duration_s)}s" if stall else None,
        f"injection{_digest(json.dumps(to_builtins(load.injection)))[:8]}"
        if load.injection
        else None,
        f"with-{load.background_endpoint}" if load.background_endpoint is not None else None,
    ]


def _arrivals(load: Arrivals) -> str:
    arrivals, ramp, points = str(load).partition("ramp:")
    # Of seconds, or long.
    points = _digest(points)[:8] if len(points) > 24 or "," in points else points
    return f"{arrivals}{ramp}{points}".replace(":", "").replace(" ", "-").replace("..", "to")


def _batch(load: Load) -> list[str]:
    return [
        f"{load.requests}requests",
        f"c{load.connections}",
        f"nofile{load.open_files}",
        "reused" if load.reuse else "unreused",
    ]


def _timed(load: Load) -> list[str]:
    pace = "closed"
    if load.mode == "constant" and load.fraction is not None:
        # The rate is not known yet.
        cells = _digest("\0".join(sorted(load.of_saturation or ())))[:6]
        pace = f"{plain(round(100 * load.fraction, 2))}pct{cells}"
    elif load.mode == "constant" and load.rate is not None:
        pace = f"{plain(round(load.rate, 3))}rps"
    seconds = f"{plain(load.duration_s or 0)}s"
    connections = f"{'upto' if load.on_demand else 'c'}{load.connections}"
    return [pace, connections, seconds, f"w{plain(load.warmup_s)}s"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json_digest(content: object) -> str:
    return _digest(json.dumps(content, sort_keys=True))[:8]
