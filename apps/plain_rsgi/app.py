"""The lab's endpoints on RSGI alone, without a framework. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from html import escape
from typing import Any

import services
import work

Answer = tuple[str, bytes]
State = dict[str, Any]

NAME = "<!DOCTYPE html><html><head><title>Hello</title></head><body><p>Hello, {}!</p></body></html>"
TABLE = (
    "<!DOCTYPE html><html><head><title>Table</title></head><body><table>{}</table></body></html>"
)
FORTUNES = (
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body>"
    "<table><tr><th>id</th><th>message</th></tr>{}</table></body></html>"
)
ROW = "<tr>{}</tr>"
CELL = "<td>{}</td>"
ITEMS = "/crud/items"


async def index(state: State) -> Answer:
    return work.JSON, work.dumps({"hello": "world"})


async def hello(state: State) -> Answer:
    return work.TEXT, work.HELLO.encode()


async def agents(state: State) -> Answer:
    return work.JSON, work.dumps(await state["services"].agents())


async def write(state: State) -> Answer:
    return work.JSON, work.dumps(await state["services"].write())


async def render_name(state: State) -> Answer:
    return work.HTML, NAME.format(work.NAME).encode()


async def render_table(state: State) -> Answer:
    rows = [ROW.format("".join([CELL.format(cell) for cell in row])) for row in work.TABLE]
    return work.HTML, TABLE.format("".join(rows)).encode()


async def fortunes(state: State) -> Answer:
    rows = [
        ROW.format(CELL.format(number) + CELL.format(escape(message)))
        for number, message in await state["services"].fortunes()
    ]
    return work.HTML, FORTUNES.format("".join(rows)).encode()


async def lookup(state: State) -> Answer:
    return work.JSON, work.dumps({"found": work.lookup()})


async def sleep(state: State) -> Answer:
    await asyncio.sleep(0.05)
    return work.JSON, work.dumps({"slept_ms": 50})


async def several_sleeps(state: State) -> Answer:
    await services.several_sleeps()
    return work.JSON, work.dumps({"slept_ms": 125})


async def cpu(state: State) -> Answer:
    work.cpu_work()
    return work.JSON, work.dumps({"worked_ms": 500})


async def cpu_in_executor(state: State) -> Answer:
    await services.cpu_in_executor()
    return work.JSON, work.dumps({"worked_ms": 500})


async def upstream(state: State) -> Answer:
    _, body = await state["services"].upstream()
    return work.TEXT, body


async def book(state: State) -> Answer:
    await asyncio.sleep(work.book_delay())
    return work.HTML, work.book()


ENDPOINTS: dict[str, Callable[[State], Awaitable[Answer]]] = {
    "/index": index,
    "/hello": hello,
    "/agents": agents,
    "/write": write,
    "/render_name": render_name,
    "/render_table": render_table,
    "/fortunes": fortunes,
    "/lookup": lookup,
    "/sleep": sleep,
    "/complex": several_sleeps,
    "/cpu": cpu,
    "/cpu_in_executor": cpu_in_executor,
    "/upstream": upstream,
    "/book": book,
}


async def crud(state: State, method: str, name: str, body: bytes) -> tuple[int, Answer] | None:
    """Read, create or update an item; return status and answer, None where it is not there."""
    if method == "POST" and not name:
        return 201, (work.JSON, work.dumps(await state["services"].create(json.loads(body))))
    found = None
    if method == "GET" and name.isdecimal():
        found = await state["services"].read(int(name))
    elif method == "PUT" and name.isdecimal():
        found = await state["services"].update(int(name), json.loads(body))
    return found and (200, (work.JSON, work.dumps(found)))


class Application:
    """Granian's own interface, which no other server speaks."""

    def __init__(self) -> None:
        self._state: State = {}
        self._open = contextlib.AsyncExitStack()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._state["services"] = loop.run_until_complete(
            self._open.enter_async_context(services.opened())
        )

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(self._open.aclose())

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        status, (content_type, body) = 404, (work.TEXT, b"Not Found")
        if endpoint := ENDPOINTS.get(scope.path):
            status, (content_type, body) = 200, await endpoint(self._state)
        elif scope.path.startswith(ITEMS):
            name = scope.path.removeprefix(ITEMS).removeprefix("/")
            if found := await crud(self._state, scope.method, name, await protocol()):
                status, (content_type, body) = found
        protocol.response_bytes(
            status=status,
            headers=[("content-type", content_type), ("content-length", str(len(body)))],
            body=body,
        )


application = Application()
