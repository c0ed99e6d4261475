"""The lab's endpoints on FastAPI. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import work
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, FileSystemLoader
from pydantic import BaseModel

templates = Jinja2Templates(
    env=Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,
    )
)


class Change(BaseModel):
    name: str
    price: int
    quantity: int


class Item(Change):
    id: int
    category: str


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    async with (
        asyncpg.create_pool(
            os.environ["LAB_DATABASE"], min_size=size, max_size=size
        ) as app.state.pool,
        # Its own limit of 100 connections would be what is measured.
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as app.state.session,
    ):
        yield


application = FastAPI(lifespan=lifespan)


@application.get("/index")
async def index() -> dict[str, str]:
    return {"hello": "world"}


@application.get("/hello", response_class=PlainTextResponse)
async def hello() -> str:
    return work.HELLO


@application.get("/agents")
async def agents(request: Request) -> dict[str, list[dict[str, Any]]]:
    return work.agents(await request.app.state.pool.fetch(work.AGENTS))


@application.get("/write")
async def write(request: Request) -> dict[str, int]:
    return work.written(await request.app.state.pool.fetch(work.WRITE))


@application.get("/render_name", response_class=HTMLResponse)
async def render_name(request: Request) -> Response:
    return templates.TemplateResponse(request, "name.html", {"name": work.NAME})


@application.get("/render_table", response_class=HTMLResponse)
async def render_table(request: Request) -> Response:
    return templates.TemplateResponse(request, "table.html", {"rows": work.TABLE})


@application.get("/fortunes", response_class=HTMLResponse)
async def fortunes(request: Request) -> Response:
    found = work.fortunes(await request.app.state.pool.fetch(work.FORTUNES))
    return templates.TemplateResponse(request, "fortunes.html", {"fortunes": found})


@application.get("/crud/items/{item_id}")
async def crud_read(request: Request, item_id: int) -> dict[str, Any]:
    found = work.item(await request.app.state.pool.fetch(work.READ, item_id))
    if found is None:
        raise HTTPException(404)
    return found


@application.post("/crud/items", status_code=201)
async def crud_create(request: Request, item: Item) -> dict[str, Any]:
    values = work.to_create(item.model_dump())
    return work.created(await request.app.state.pool.fetch(work.CREATE, *values))


@application.put("/crud/items/{item_id}")
async def crud_update(request: Request, item_id: int, change: Change) -> dict[str, Any]:
    values = work.to_update(item_id, change.model_dump())
    found = work.updated(await request.app.state.pool.fetch(work.UPDATE, *values))
    if found is None:
        raise HTTPException(404)
    return found


@application.get("/lookup")
async def lookup() -> dict[str, int]:
    return {"found": work.lookup()}


@application.get("/sleep")
async def sleep() -> dict[str, int]:
    await asyncio.sleep(0.05)
    return {"slept_ms": 50}


@application.get("/complex")
async def several_sleeps() -> dict[str, int]:
    await asyncio.sleep(0.05)
    await asyncio.gather(asyncio.sleep(0.05), asyncio.sleep(0.05))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.025):
            await asyncio.sleep(0.05)
    return {"slept_ms": 125}


@application.get("/cpu")
async def cpu() -> dict[str, int]:
    work.cpu_work()
    return {"worked_ms": 500}


@application.get("/cpu_in_executor")
async def cpu_in_executor() -> dict[str, int]:
    await asyncio.get_running_loop().run_in_executor(None, work.cpu_work)
    return {"worked_ms": 500}


@application.get("/upstream", response_class=PlainTextResponse)
async def upstream(request: Request) -> Response:
    async with request.app.state.session.get(os.environ["LAB_UPSTREAM"]) as answer:
        return PlainTextResponse(await answer.read(), answer.status)


@application.get("/book", response_class=HTMLResponse)
async def book() -> Response:
    await asyncio.sleep(work.book_delay())
    return HTMLResponse(work.book())
