"""The lab's endpoints on Litestar. Contract: files/endpoints.yml."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import services
import work
from jinja2 import Environment, FileSystemLoader
from litestar import Litestar, MediaType, Response, get, post, put
from litestar.contrib.jinja import JinjaTemplateEngine
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.response import Template
from litestar.template import TemplateConfig

templates = JinjaTemplateEngine.from_environment(
    Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,
    )
)


@get("/index")
async def index() -> dict[str, str]:
    return {"hello": "world"}


@get("/hello", media_type=MediaType.TEXT)
async def hello() -> str:
    return work.HELLO


@get("/agents")
async def agents(state: State) -> dict[str, Any]:
    return await state.services.agents()


@get("/write")
async def write(state: State) -> dict[str, int]:
    return await state.services.write()


@get("/render_name")
async def render_name() -> Template:
    return Template("name.html", context={"name": work.NAME})


@get("/render_table")
async def render_table() -> Template:
    return Template("table.html", context={"rows": work.TABLE})


@get("/fortunes")
async def fortunes(state: State) -> Template:
    return Template("fortunes.html", context={"fortunes": await state.services.fortunes()})


@get("/crud/items/{item_id:int}")
async def crud_read(state: State, item_id: int) -> dict[str, Any]:
    found = await state.services.read(item_id)
    if found is None:
        raise NotFoundException
    return found


@post("/crud/items")
async def crud_create(state: State, data: dict[str, Any]) -> dict[str, Any]:
    return await state.services.create(data)


@put("/crud/items/{item_id:int}")
async def crud_update(state: State, item_id: int, data: dict[str, Any]) -> dict[str, Any]:
    found = await state.services.update(item_id, data)
    if found is None:
        raise NotFoundException
    return found


@get("/lookup")
async def lookup() -> dict[str, int]:
    return {"found": work.lookup()}


@get("/sleep")
async def sleep() -> dict[str, int]:
    await asyncio.sleep(0.05)
    return {"slept_ms": 50}


@get("/complex")
async def several_sleeps() -> dict[str, int]:
    await services.several_sleeps()
    return {"slept_ms": 125}


@get("/cpu")
async def cpu() -> dict[str, int]:
    work.cpu_work()
    return {"worked_ms": 500}


@get("/cpu_in_executor")
async def cpu_in_executor() -> dict[str, int]:
    await services.cpu_in_executor()
    return {"worked_ms": 500}


@get("/upstream", media_type=MediaType.TEXT)
async def upstream(state: State) -> Response[bytes]:
    status, body = await state.services.upstream()
    return Response(body, status_code=status)


@get("/book", media_type=MediaType.HTML)
async def book() -> bytes:
    await asyncio.sleep(work.book_delay())
    return work.book()


@contextlib.asynccontextmanager
async def lifespan(app: Litestar) -> AsyncIterator[None]:
    async with services.opened() as app.state.services:
        yield


application = Litestar(
    [
        index,
        hello,
        agents,
        write,
        render_name,
        render_table,
        fortunes,
        crud_read,
        crud_create,
        crud_update,
        lookup,
        sleep,
        several_sleeps,
        cpu,
        cpu_in_executor,
        upstream,
        book,
    ],
    lifespan=[lifespan],
    template_config=TemplateConfig(instance=templates),
)
