"""The database and the slow service as applications on asyncio use them, and work that only waits.

LAB_DATABASE is the connection string, LAB_POOL_SIZE the connections of one worker's pool,
LAB_UPSTREAM the slow service's address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import asyncpg
import work


class Services:
    """A pool of database connections and an HTTP client, open while the application serves."""

    def __init__(self, pool: asyncpg.Pool, session: aiohttp.ClientSession) -> None:
        self._pool, self._session = pool, session

    async def agents(self) -> dict[str, Any]:
        return work.agents(await self._pool.fetch(work.AGENTS))

    async def write(self) -> dict[str, int]:
        return work.written(await self._pool.fetch(work.WRITE))

    async def fortunes(self) -> list[tuple[int, str]]:
        return work.fortunes(await self._pool.fetch(work.FORTUNES))

    async def read(self, item_id: int) -> dict[str, Any] | None:
        return work.item(await self._pool.fetch(work.READ, item_id))

    async def create(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return work.created(await self._pool.fetch(work.CREATE, *work.to_create(item)))

    async def update(self, item_id: int, item: Mapping[str, Any]) -> dict[str, Any] | None:
        return work.updated(await self._pool.fetch(work.UPDATE, *work.to_update(item_id, item)))

    async def upstream(self) -> tuple[int, bytes]:
        """Return status and body of the slow service's answer."""
        async with self._session.get(os.environ["LAB_UPSTREAM"]) as answer:
            return answer.status, await answer.read()


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[Services]:
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    async with (
        asyncpg.create_pool(os.environ["LAB_DATABASE"], min_size=size, max_size=size) as pool,
        # Its own limit of 100 connections would be what is measured.
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        yield Services(pool, session)


async def several_sleeps() -> None:
    """Sleep once, then twice at once, then until a timeout."""
    await asyncio.sleep(0.05)
    await asyncio.gather(asyncio.sleep(0.05), asyncio.sleep(0.05))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.025):
            await asyncio.sleep(0.05)


async def cpu_in_executor() -> None:
    """The work of /cpu in the event loop's pool of threads."""
    await asyncio.get_running_loop().run_in_executor(None, work.cpu_work)
