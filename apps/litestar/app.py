"""The lab's endpoints on Litestar. Contract: files/endpoints.yml."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import services
import work
from jinja2 import Environment, FileSystemLoader
from litestar import Litestar, MediaType, Response, get
from litestar.contrib.jinja import JinjaTemplateEngine
from litestar.datastructures import State
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
