"""The lab's endpoints on Starlette. Contract: files/endpoints.yml."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import services
import work
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.templating import Jinja2Templates

templates = Jinja2Templates(
    env=Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,
    )
)


async def index(request: Request) -> Response:
    return JSONResponse({"hello": "world"})


async def hello(request: Request) -> Response:
    return PlainTextResponse(work.HELLO)


async def agents(request: Request) -> Response:
    return JSONResponse(await request.app.state.services.agents())


async def write(request: Request) -> Response:
    return JSONResponse(await request.app.state.services.write())


async def render_name(request: Request) -> Response:
    return templates.TemplateResponse(request, "name.html", {"name": work.NAME})


async def render_table(request: Request) -> Response:
    return templates.TemplateResponse(request, "table.html", {"rows": work.TABLE})


async def fortunes(request: Request) -> Response:
    found = await request.app.state.services.fortunes()
    return templates.TemplateResponse(request, "fortunes.html", {"fortunes": found})


async def crud_read(request: Request) -> Response:
    found = await request.app.state.services.read(request.path_params["item_id"])
    if found is None:
        raise HTTPException(404)
    return JSONResponse(found)


async def crud_create(request: Request) -> Response:
    created = await request.app.state.services.create(await request.json())
    return JSONResponse(created, 201)


async def crud_update(request: Request) -> Response:
    item_id = request.path_params["item_id"]
    found = await request.app.state.services.update(item_id, await request.json())
    if found is None:
        raise HTTPException(404)
    return JSONResponse(found)


async def lookup(request: Request) -> Response:
    return JSONResponse({"found": work.lookup()})


async def sleep(request: Request) -> Response:
    await asyncio.sleep(0.05)
    return JSONResponse({"slept_ms": 50})


async def several_sleeps(request: Request) -> Response:
    await services.several_sleeps()
    return JSONResponse({"slept_ms": 125})


async def cpu(request: Request) -> Response:
    work.cpu_work()
    return JSONResponse({"worked_ms": 500})


async def cpu_in_executor(request: Request) -> Response:
    await services.cpu_in_executor()
    return JSONResponse({"worked_ms": 500})


async def upstream(request: Request) -> Response:
    status, body = await request.app.state.services.upstream()
    return PlainTextResponse(body, status)


async def book(request: Request) -> Response:
    await asyncio.sleep(work.book_delay())
    return HTMLResponse(work.book())


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with services.opened() as app.state.services:
        yield


application = Starlette(
    routes=[
        Route("/index", index),
        Route("/hello", hello),
        Route("/agents", agents),
        Route("/write", write),
        Route("/render_name", render_name),
        Route("/render_table", render_table),
        Route("/fortunes", fortunes),
        Route("/crud/items", crud_create, methods=["POST"]),
        Route("/crud/items/{item_id:int}", crud_read, methods=["GET"]),
        Route("/crud/items/{item_id:int}", crud_update, methods=["PUT"]),
        Route("/lookup", lookup),
        Route("/sleep", sleep),
        Route("/complex", several_sleeps),
        Route("/cpu", cpu),
        Route("/cpu_in_executor", cpu_in_executor),
        Route("/upstream", upstream),
        Route("/book", book),
    ],
    lifespan=lifespan,
)
