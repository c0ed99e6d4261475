"""The lab's endpoints on aiohttp. Contract: files/endpoints.yml."""

import asyncio
import os
from collections.abc import AsyncIterator

import asyncpg
from aiohttp import web

POOL = web.AppKey("pool", asyncpg.Pool)
AGENTS = """
    SELECT a.id, a.first_name, a.last_name, a.extension, a.email, s.status, s.since
    FROM agents a JOIN login_status s ON s.agent_id = a.id
    ORDER BY a.id
"""


async def index(request: web.Request) -> web.Response:
    return web.json_response({"hello": "world"})


async def agents(request: web.Request) -> web.Response:
    async with request.app[POOL].acquire() as connection:
        rows = await connection.fetch(AGENTS)
    return web.json_response({"agents": [dict(row) for row in rows]})


async def sleep(request: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    return web.json_response({"slept_ms": 50})


async def pool(app: web.Application) -> AsyncIterator[None]:
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    async with asyncpg.create_pool(os.environ["LAB_DATABASE"], min_size=size, max_size=size) as app[
        POOL
    ]:
        yield


async def application() -> web.Application:
    app = web.Application()
    app.add_routes([web.get("/index", index), web.get("/agents", agents), web.get("/sleep", sleep)])
    app.cleanup_ctx.append(pool)
    return app
