"""Lets API-Hour 0.8.2, of 2017, run on today's Python: mends what asyncio has changed under it.

It is API-Hour's own code that runs. Its worker gets an asyncio in which three calls mean what
they meant; for everybody else that module stays as it is.
"""

import asyncio
import sys
import types
from collections.abc import Awaitable, Collection
from typing import Any

import api_hour.worker


async def sleep(delay: float, *, loop: asyncio.AbstractEventLoop) -> None:
    # `loop` was removed in Python 3.10. The worker waits with this between two signs of life, and
    # takes the error for the order to stop: it ends, and the arbiter starts the next, for ever.
    await asyncio.sleep(delay)


async def wait(
    awaitables: Collection[Awaitable[Any]], *, loop: asyncio.AbstractEventLoop, return_when: str
) -> None:
    # `loop` was removed in Python 3.10, and in 3.11 that coroutines can be given; the worker does
    # both, in two calls, when it stops.
    await asyncio.wait([loop.create_task(each) for each in awaitables], return_when=return_when)


async def wait_closed(server: asyncio.Server) -> None:
    """Nothing: so it was for a server that has been told to close."""


mended = types.ModuleType("asyncio")
mended.__dict__.update(vars(asyncio), sleep=sleep, wait=wait)
api_hour.worker.asyncio = mended

if sys.version_info >= (3, 12):
    # Since then it waits until every connection is closed. The worker sees to that only after
    # this call, and would stop for ever where nginx keeps its connections.
    asyncio.Server.wait_closed = wait_closed
