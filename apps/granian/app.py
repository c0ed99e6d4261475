"""The lab's endpoints on Granian, with no framework. Contract: files/endpoints.yml.

They are ASGI, as those of the frameworks are that it is compared with; Granian's own interface,
RSGI, is not what they could run on.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import work
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server

Answer = tuple[str, bytes]
State = dict[str, Any]

NAME = "<!DOCTYPE html><html><head><title>Hello</title></head><body><p>Hello, {}!</p></body></html>"
TABLE = (
    "<!DOCTYPE html><html><head><title>Table</title></head><body><table>{}</table></body></html>"
)
ROW = "<tr>{}</tr>"
CELL = "<td>{}</td>"


async def index(state: State) -> Answer:
    return work.JSON, work.dumps({"hello": "world"})


async def hello(state: State) -> Answer:
    return work.TEXT, work.HELLO.encode()


async def agents(state: State) -> Answer:
    return work.JSON, work.dumps(work.agents(await state["pool"].fetch(work.AGENTS)))


async def write(state: State) -> Answer:
    return work.JSON, work.dumps(work.written(await state["pool"].fetch(work.WRITE)))


async def render_name(state: State) -> Answer:
    return work.HTML, NAME.format(work.NAME).encode()


async def render_table(state: State) -> Answer:
    rows = [ROW.format("".join([CELL.format(cell) for cell in row])) for row in work.TABLE]
    return work.HTML, TABLE.format("".join(rows)).encode()


async def lookup(state: State) -> Answer:
    return work.JSON, work.dumps({"found": work.lookup()})


async def sleep(state: State) -> Answer:
    await asyncio.sleep(0.05)
    return work.JSON, work.dumps({"slept_ms": 50})


async def several_sleeps(state: State) -> Answer:
    await asyncio.sleep(0.05)
    await asyncio.gather(asyncio.sleep(0.05), asyncio.sleep(0.05))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.025):
            await asyncio.sleep(0.05)
    return work.JSON, work.dumps({"slept_ms": 125})


ENDPOINTS: dict[str, Callable[[State], Awaitable[Answer]]] = {
    "/index": index,
    "/hello": hello,
    "/agents": agents,
    "/write": write,
    "/render_name": render_name,
    "/render_table": render_table,
    "/lookup": lookup,
    "/sleep": sleep,
    "/complex": several_sleeps,
}


async def lifespan(state: State, receive: Callable, send: Callable) -> None:
    await receive()
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    async with asyncpg.create_pool(
        os.environ["LAB_DATABASE"], min_size=size, max_size=size
    ) as state["pool"]:
        await send({"type": "lifespan.startup.complete"})
        # Granian accepts connections once it knows this, before the loop goes on.
        asyncio.get_running_loop().call_later(0.1, work.ready)
        await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def application(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
    if scope["type"] == "lifespan":
        await lifespan(scope["state"], receive, send)
        return
    status, (content_type, body) = 404, (work.TEXT, b"Not Found")
    if endpoint := ENDPOINTS.get(scope["path"]):
        status, (content_type, body) = 200, await endpoint(scope["state"])
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type.encode()),
                (b"content-length", str(len(body)).encode()),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    listen = os.environ["LAB_LISTEN"]
    where: dict[str, Any]
    if listen.startswith("unix:"):
        path = Path(listen.removeprefix("unix:"))
        path.unlink(missing_ok=True)
        # nginx runs as another user.
        where = {"uds": path, "uds_permissions": 0o666}
    else:
        address, _, port = listen.rpartition(":")
        where = {"address": address, "port": int(port)}
    Server(
        "app:application",
        **where,
        interface=Interfaces.ASGI,
        workers=int(os.environ["LAB_WORKERS"]),
        backlog=int(os.environ["LAB_BACKLOG"]),
        # Connections that a worker holds at once, idle ones too; its own number is the backlog,
        # divided among the workers.
        backpressure=65_536,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        # Milliseconds; a connection that is idle for so long is closed.
        http1_settings=HTTP1Settings(header_read_timeout=75_000),
        websockets=False,
        log_level=LogLevels.warning,
    ).serve()
