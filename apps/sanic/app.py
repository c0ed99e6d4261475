"""The lab's endpoints on Sanic. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import services
import work
from jinja2 import Environment, FileSystemLoader
from sanic import HTTPResponse, Request, Sanic
from sanic.exceptions import NotFound
from sanic.response import html, json, raw, text

templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    auto_reload=False,
)

application = Sanic("lab", configure_logging=False)
application.config.ACCESS_LOG = False
application.config.KEEP_ALIVE_TIMEOUT = 75
application.config.MOTD = False


def render(template: str, **values: Any) -> HTTPResponse:
    return html(templates.get_template(template).render(values))


@application.before_server_start
async def start(app: Sanic) -> None:
    app.ctx.open = contextlib.AsyncExitStack()
    app.ctx.services = await app.ctx.open.enter_async_context(services.opened())


@application.after_server_start
async def started(app: Sanic) -> None:
    work.ready()


@application.after_server_stop
async def stop(app: Sanic) -> None:
    await app.ctx.open.aclose()


@application.get("/index")
async def index(request: Request) -> HTTPResponse:
    return json({"hello": "world"})


@application.get("/hello")
async def hello(request: Request) -> HTTPResponse:
    return text(work.HELLO)


@application.get("/agents")
async def agents(request: Request) -> HTTPResponse:
    return json(await request.app.ctx.services.agents())


@application.get("/write")
async def write(request: Request) -> HTTPResponse:
    return json(await request.app.ctx.services.write())


@application.get("/render_name")
async def render_name(request: Request) -> HTTPResponse:
    return render("name.html", name=work.NAME)


@application.get("/render_table")
async def render_table(request: Request) -> HTTPResponse:
    return render("table.html", rows=work.TABLE)


@application.get("/fortunes")
async def fortunes(request: Request) -> HTTPResponse:
    return render("fortunes.html", fortunes=await request.app.ctx.services.fortunes())


@application.get("/crud/items/<item_id:int>")
async def crud_read(request: Request, item_id: int) -> HTTPResponse:
    found = await request.app.ctx.services.read(item_id)
    if found is None:
        raise NotFound
    return json(found)


@application.post("/crud/items")
async def crud_create(request: Request) -> HTTPResponse:
    return json(await request.app.ctx.services.create(request.json), 201)


@application.put("/crud/items/<item_id:int>")
async def crud_update(request: Request, item_id: int) -> HTTPResponse:
    found = await request.app.ctx.services.update(item_id, request.json)
    if found is None:
        raise NotFound
    return json(found)


@application.get("/lookup")
async def lookup(request: Request) -> HTTPResponse:
    return json({"found": work.lookup()})


@application.get("/sleep")
async def sleep(request: Request) -> HTTPResponse:
    await asyncio.sleep(0.05)
    return json({"slept_ms": 50})


@application.get("/complex")
async def several_sleeps(request: Request) -> HTTPResponse:
    await services.several_sleeps()
    return json({"slept_ms": 125})


@application.get("/cpu")
async def cpu(request: Request) -> HTTPResponse:
    work.cpu_work()
    return json({"worked_ms": 500})


@application.get("/cpu_in_executor")
async def cpu_in_executor(request: Request) -> HTTPResponse:
    await services.cpu_in_executor()
    return json({"worked_ms": 500})


@application.get("/upstream")
async def upstream(request: Request) -> HTTPResponse:
    status, body = await request.app.ctx.services.upstream()
    return raw(body, status, content_type=work.TEXT)


@application.get("/book")
async def book(request: Request) -> HTTPResponse:
    await asyncio.sleep(work.book_delay())
    return raw(work.book(), content_type=work.HTML)


def add_length(request: Request, response: HTTPResponse) -> None:
    response.headers["content-length"] = str(len(response.body))


if __name__ == "__main__":
    application.run(
        sock=work.listen(),
        workers=int(os.environ["LAB_WORKERS"]),
        backlog=int(os.environ["LAB_BACKLOG"]),
        access_log=False,
    )
elif __name__ == "app":
    # Another server has imported it. As an ASGI application, Sanic names no length.
    application.register_middleware(add_length, "response")
