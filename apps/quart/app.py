"""The lab's endpoints on Quart. Contract: files/endpoints.yml."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import services
import work
from quart import Quart, Response, abort, render_template, request
from quart.json.provider import JSONProvider


class CompactJSON(JSONProvider):
    # Quart's own sorts the keys and puts a newline at the end.
    def dumps(self, object_: Any, **kwargs: Any) -> str:
        return work.dumps(object_).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        return json.loads(s, **kwargs)


application = Quart(__name__)
application.json = CompactJSON(application)


@application.while_serving
async def serving() -> AsyncIterator[None]:
    async with services.opened() as application.services:
        yield


@application.get("/index")
async def index() -> dict[str, str]:
    return {"hello": "world"}


@application.get("/hello")
async def hello() -> Response:
    return Response(work.HELLO, content_type=work.TEXT)


@application.get("/agents")
async def agents() -> dict[str, Any]:
    return await application.services.agents()


@application.get("/write")
async def write() -> dict[str, int]:
    return await application.services.write()


@application.get("/render_name")
async def render_name() -> str:
    return await render_template("name.html", name=work.NAME)


@application.get("/render_table")
async def render_table() -> str:
    return await render_template("table.html", rows=work.TABLE)


@application.get("/fortunes")
async def fortunes() -> str:
    return await render_template("fortunes.html", fortunes=await application.services.fortunes())


@application.get("/crud/items/<int:item_id>")
async def crud_read(item_id: int) -> dict[str, Any]:
    return await application.services.read(item_id) or abort(404)


@application.post("/crud/items")
async def crud_create() -> tuple[dict[str, Any], int]:
    return await application.services.create(await request.get_json()), 201


@application.put("/crud/items/<int:item_id>")
async def crud_update(item_id: int) -> dict[str, Any]:
    return await application.services.update(item_id, await request.get_json()) or abort(404)


@application.get("/lookup")
async def lookup() -> dict[str, int]:
    return {"found": work.lookup()}


@application.get("/sleep")
async def sleep() -> dict[str, int]:
    await asyncio.sleep(0.05)
    return {"slept_ms": 50}


@application.get("/complex")
async def several_sleeps() -> dict[str, int]:
    await services.several_sleeps()
    return {"slept_ms": 125}


@application.get("/cpu")
async def cpu() -> dict[str, int]:
    work.cpu_work()
    return {"worked_ms": 500}


@application.get("/cpu_in_executor")
async def cpu_in_executor() -> dict[str, int]:
    await services.cpu_in_executor()
    return {"worked_ms": 500}


@application.get("/upstream")
async def upstream() -> Response:
    status, body = await application.services.upstream()
    return Response(body, status, content_type=work.TEXT)


@application.get("/book")
async def book() -> Response:
    await asyncio.sleep(work.book_delay())
    return Response(work.book(), content_type=work.HTML)
