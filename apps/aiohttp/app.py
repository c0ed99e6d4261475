"""The lab's endpoints on aiohttp. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import work
from aiohttp import ClientSession, TCPConnector, web
from jinja2 import Environment, FileSystemLoader

# Gunicorn's worker names no backlog: aiohttp would listen again with 128, its own.
web.SockSite.__init__.__kwdefaults__["backlog"] = int(os.environ["LAB_BACKLOG"])

POOL = web.AppKey("pool", asyncpg.Pool)
SESSION = web.AppKey("session", ClientSession)

templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    auto_reload=False,
)


def json_response(value: Any, status: int = 200) -> web.Response:
    return web.json_bytes_response(value, status=status, dumps=work.dumps)


def render(template: str, **values: Any) -> web.Response:
    return web.Response(
        text=templates.get_template(template).render(values), content_type="text/html"
    )


async def index(request: web.Request) -> web.Response:
    return json_response({"hello": "world"})


async def hello(request: web.Request) -> web.Response:
    return web.Response(text=work.HELLO)


async def agents(request: web.Request) -> web.Response:
    return json_response(work.agents(await request.app[POOL].fetch(work.AGENTS)))


async def write(request: web.Request) -> web.Response:
    return json_response(work.written(await request.app[POOL].fetch(work.WRITE)))


async def render_name(request: web.Request) -> web.Response:
    return render("name.html", name=work.NAME)


async def render_table(request: web.Request) -> web.Response:
    return render("table.html", rows=work.TABLE)


async def fortunes(request: web.Request) -> web.Response:
    rows = await request.app[POOL].fetch(work.FORTUNES)
    return render("fortunes.html", fortunes=work.fortunes(rows))


async def crud_read(request: web.Request) -> web.Response:
    rows = await request.app[POOL].fetch(work.READ, int(request.match_info["item_id"]))
    if not rows:
        raise web.HTTPNotFound
    return json_response(work.item(rows))


async def crud_create(request: web.Request) -> web.Response:
    values = work.to_create(await request.json())
    rows = await request.app[POOL].fetch(work.CREATE, *values)
    return json_response(work.created(rows), 201)


async def crud_update(request: web.Request) -> web.Response:
    values = work.to_update(int(request.match_info["item_id"]), await request.json())
    rows = await request.app[POOL].fetch(work.UPDATE, *values)
    if not rows:
        raise web.HTTPNotFound
    return json_response(work.updated(rows))


async def lookup(request: web.Request) -> web.Response:
    return json_response({"found": work.lookup()})


async def sleep(request: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    return json_response({"slept_ms": 50})


async def several_sleeps(request: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    await asyncio.gather(asyncio.sleep(0.05), asyncio.sleep(0.05))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.025):
            await asyncio.sleep(0.05)
    return json_response({"slept_ms": 125})


async def cpu(request: web.Request) -> web.Response:
    work.cpu_work()
    return json_response({"worked_ms": 500})


async def cpu_in_executor(request: web.Request) -> web.Response:
    await asyncio.get_running_loop().run_in_executor(None, work.cpu_work)
    return json_response({"worked_ms": 500})


async def upstream(request: web.Request) -> web.Response:
    async with request.app[SESSION].get(os.environ["LAB_UPSTREAM"]) as answer:
        return web.Response(text=await answer.text(), status=answer.status)


async def book(request: web.Request) -> web.Response:
    await asyncio.sleep(work.book_delay())
    return web.Response(body=work.book(), content_type="text/html", charset="utf-8")


async def pool(app: web.Application) -> AsyncIterator[None]:
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    async with asyncpg.create_pool(os.environ["LAB_DATABASE"], min_size=size, max_size=size) as app[
        POOL
    ]:
        yield


async def session(app: web.Application) -> AsyncIterator[None]:
    # Its own limit of 100 connections would be what is measured.
    async with ClientSession(connector=TCPConnector(limit=0)) as app[SESSION]:
        yield


async def application() -> web.Application:
    app = web.Application()
    app.add_routes(
        [
            web.get("/index", index),
            web.get("/hello", hello),
            web.get("/agents", agents),
            web.get("/agents_with_pool", agents),
            web.get("/write", write),
            web.get("/render_name", render_name),
            web.get("/render_table", render_table),
            web.get("/fortunes", fortunes),
            web.get(r"/crud/items/{item_id:\d+}", crud_read),
            web.post("/crud/items", crud_create),
            web.put(r"/crud/items/{item_id:\d+}", crud_update),
            web.get("/lookup", lookup),
            web.get("/sleep", sleep),
            web.get("/complex", several_sleeps),
            web.get("/cpu", cpu),
            web.get("/cpu_in_executor", cpu_in_executor),
            web.get("/upstream", upstream),
            web.get("/book", book),
        ]
    )
    app.cleanup_ctx.extend([pool, session])
    return app


def run(listener: socket.socket) -> None:
    web.run_app(
        application(),
        sock=listener,
        backlog=int(os.environ["LAB_BACKLOG"]),
        keepalive_timeout=75,
        access_log=None,
        print=None,
    )


if __name__ == "__main__":
    work.set_event_loop()
    work.serve(run)
