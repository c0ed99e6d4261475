"""The lab's endpoints on API-Hour, with aiohttp.web. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import api_hour
import api_hour.application
import asyncpg
import shim  # noqa: F401  API-Hour's workers do not live without it.
import work
from aiohttp import web
from jinja2 import Environment, FileSystemLoader

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
    pool = request.app[CONTAINER].engines["pg"]
    return json_response(work.agents(await pool.fetch(work.AGENTS)))


async def write(request: web.Request) -> web.Response:
    pool = request.app[CONTAINER].engines["pg"]
    return json_response(work.written(await pool.fetch(work.WRITE)))


async def render_name(request: web.Request) -> web.Response:
    return render("name.html", name=work.NAME)


async def render_table(request: web.Request) -> web.Response:
    return render("table.html", rows=work.TABLE)


async def fortunes(request: web.Request) -> web.Response:
    rows = await request.app[CONTAINER].engines["pg"].fetch(work.FORTUNES)
    return render("fortunes.html", fortunes=work.fortunes(rows))


async def crud_read(request: web.Request) -> web.Response:
    rows = (
        await request.app[CONTAINER]
        .engines["pg"]
        .fetch(work.READ, int(request.match_info["item_id"]))
    )
    if not rows:
        raise web.HTTPNotFound
    return json_response(work.item(rows))


async def crud_create(request: web.Request) -> web.Response:
    values = work.to_create(await request.json())
    rows = await request.app[CONTAINER].engines["pg"].fetch(work.CREATE, *values)
    return json_response(work.created(rows), 201)


async def crud_update(request: web.Request) -> web.Response:
    values = work.to_update(int(request.match_info["item_id"]), await request.json())
    rows = await request.app[CONTAINER].engines["pg"].fetch(work.UPDATE, *values)
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


class Container(api_hour.Container):
    def __init__(
        self, config: dict | None, worker: api_hour.Worker, loop: asyncio.AbstractEventLoop
    ) -> None:
        # What is measured is API-Hour, and nothing that stands in for it.
        assert type(worker) is api_hour.worker.Worker
        super().__init__(config, worker, loop)
        app = self.servers["http"] = web.Application()
        app[CONTAINER] = self
        app.router.add_route("GET", "/index", index)
        app.router.add_route("GET", "/hello", hello)
        app.router.add_route("GET", "/agents", agents)
        app.router.add_route("GET", "/agents_with_pool", agents)
        app.router.add_route("GET", "/write", write)
        app.router.add_route("GET", "/render_name", render_name)
        app.router.add_route("GET", "/render_table", render_table)
        app.router.add_route("GET", "/fortunes", fortunes)
        app.router.add_route("GET", r"/crud/items/{item_id:\d+}", crud_read)
        app.router.add_route("POST", "/crud/items", crud_create)
        app.router.add_route("PUT", r"/crud/items/{item_id:\d+}", crud_update)
        app.router.add_route("GET", "/lookup", lookup)
        app.router.add_route("GET", "/sleep", sleep)
        app.router.add_route("GET", "/complex", several_sleeps)
        self.runner = web.AppRunner(app, keepalive_timeout=75, access_log=None)

    async def pre_start(self) -> None:
        # As many from the start as there will ever be: no connection is made under load.
        size = int(os.environ["LAB_POOL_SIZE"])
        self.engines["pg"] = await asyncpg.create_pool(
            os.environ["LAB_DATABASE"], min_size=size, max_size=size
        )

    async def make_servers(self, sockets: list[Any]) -> dict[asyncio.Server, web.Server]:
        await self.runner.setup()
        return {
            await self.loop.create_server(
                self.runner.server, sock=each.sock, backlog=self.worker.cfg.backlog
            ): self.runner.server
            for each in sockets
        }

    async def shutdown(self) -> None:
        # API-Hour asks the server to shut down after this; it would wait for idle connections.
        self.runner.server.pre_shutdown()

    async def cleanup(self) -> None:
        await self.runner.cleanup()
        await self.engines["pg"].close()


CONTAINER = web.AppKey("container", Container)

if __name__ == "__main__":
    sys.argv[1:] = [
        f"--bind={os.environ['LAB_LISTEN']}",
        f"--backlog={os.environ['LAB_BACKLOG']}",
        f"--workers={os.environ['LAB_WORKERS']}",
        "--worker-tmp-dir=/dev/shm",
        "--no-control-socket",
        "--log-level=warning",
        "app:Container",
    ]
    api_hour.application.run()
