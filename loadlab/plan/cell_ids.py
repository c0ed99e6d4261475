"""The ids of cells and stacks. They name folders; nothing reads a part of one."""

import hashlib
import json

from msgspec import to_builtins

from loadlab.model import NGINX, Cell, Load, Purpose
from loadlab.run.formatting import plain


def stack_id(cell: Cell) -> str:
    """Return the id of the cell's stack, a part of the cell's own."""
    parts = [cell.framework, cell.server, cell.transport, cell.protocol]
    if cell.app:
        parts.insert(1, f"app{_digest(cell.app)[:8]}")
    # A dotted name is the worker class of the event loop, which the id already names.
    if cell.worker_class and "." not in cell.worker_class:
        parts.append(cell.worker_class)
    if cell.event_loop:
        parts.append(cell.event_loop)
    if cell.workers:
        parts.append(f"{cell.workers}workers")
    if cell.threads not in (None, 1):
        parts.append(f"{cell.threads}threads")
    if cell.server_keepalive_s:
        parts.append(f"keep{cell.server_keepalive_s}s")
    if cell.driver:
        parts.append(cell.driver)
    if cell.python:
        parts.append(f"python{cell.python}")
    if not cell.upstream_keepalive:
        parts.append("unkept")
    if cell.reverse_proxy != NGINX:
        parts.append("direct" if cell.direct else f"by-{cell.reverse_proxy}")
    parts.append(f"b{cell.backlog}")
    return "-".join(parts)


def cell_id(cell: Cell, purpose: Purpose) -> str:
    """Return the id of a cell for this purpose; it names every part of the cell's definition."""
    parts = [stack_id(cell), _endpoint(cell), cell.tuning, cell.network, *_load(cell.load)]
    if cell.variant:
        parts.append(cell.variant)
    return "-".join(parts if purpose == "measure" else [*parts, purpose])


def _endpoint(cell: Cell) -> str:
    """Return a part for the endpoint, short enough for a folder's name where there are many."""
    if cell.load.replay:
        return f"log{cell.load.replay.log_sha256[:8]}"
    if cell.load.session:
        steps = json.dumps(to_builtins(cell.load.session), sort_keys=True)
        return f"session{len(cell.load.session)}-{_digest(steps)[:8]}"
    kinds = cell.kinds
    return cell.endpoint if len(kinds) == 1 else f"mix{len(kinds)}-{_digest(cell.endpoint)[:8]}"


def _load(load: Load) -> list[str]:
    parts = [load.generator, *(_batch(load) if load.mode == "batch" else _timed(load))]
    if load.arrivals is not None:
        arrivals, ramp, points = str(load.arrivals).partition("ramp:")
        # Of seconds, or long.
        points = _digest(points)[:8] if len(points) > 24 or "," in points else points
        named = f"{arrivals}{ramp}{points}"
        parts.append(named.replace(":", "").replace(" ", "-").replace("..", "to"))
    if load.replay is not None:
        parts.append(f"x{plain(load.replay.speed)}" + ("-query" if load.replay.query else ""))
    if load.timeout_s is not None:
        parts.append(f"timeout{plain(load.timeout_s)}s")
    if load.keepalive is False:
        parts.append("unkept")
    if load.burst_every_s is not None:
        parts.append(f"burst{plain(load.burst_every_s)}s")
    if load.tls:
        parts.append("http2" if load.http2 else "tls")
    if load.headers:
        parts.append(f"headers{_digest(json.dumps(load.headers, sort_keys=True))[:8]}")
    if load.lanes is not None:
        parts.append("lanes")
    if load.clients is not None:
        parts.append(f"{load.clients}clients")
    if load.stall is not None:
        parts.append(f"stall{plain(load.stall.duration_s)}s")
    if load.injection is not None:
        parts.append(f"injection{_digest(json.dumps(to_builtins(load.injection)))[:8]}")
    if load.background_endpoint is not None:
        parts.append(f"with-{load.background_endpoint}")
    return parts


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
