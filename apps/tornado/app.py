"""The lab's endpoints on Tornado with async and await. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import functools
import json
import os
import socket
from datetime import timedelta
from typing import Any

import asyncpg
import work
from tornado import gen
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.template import DictLoader
from tornado.web import Application, HTTPError, RequestHandler

# Tornado would keep the newline at a file's end; these have none.
TEMPLATES = {
    "name.html": (
        "<!DOCTYPE html><html><head><title>Hello</title></head>"
        "<body><p>Hello, {{ name }}!</p></body></html>"
    ),
    "table.html": (
        "<!DOCTYPE html><html><head><title>Table</title></head><body><table>"
        "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% end %}</tr>{% end %}"
        "</table></body></html>"
    ),
    "fortunes.html": (
        "<!DOCTYPE html><html><head><title>Fortunes</title></head><body>"
        "<table><tr><th>id</th><th>message</th></tr>"
        "{% for id, message in fortunes %}"
        "<tr><td>{{ id }}</td><td>{{ message }}</td></tr>{% end %}"
        "</table></body></html>"
    ),
}

# Its own limit of 10 requests at once would be what is measured.
AsyncHTTPClient.configure(None, max_clients=10_000)


@functools.cache
def pool() -> asyncio.Future[asyncpg.Pool]:
    # As many from the start as there will ever be: no connection is made under load.
    size = int(os.environ["LAB_POOL_SIZE"])
    return asyncio.ensure_future(
        asyncpg.create_pool(os.environ["LAB_DATABASE"], min_size=size, max_size=size)
    )


class Handler(RequestHandler):
    def set_default_headers(self) -> None:
        self.set_header("Content-Type", work.HTML)

    def finish_json(self, value: Any) -> None:
        self.set_header("Content-Type", work.JSON)
        self.finish(work.dumps(value))


class Index(Handler):
    def get(self) -> None:
        self.finish_json({"hello": "world"})


class Hello(Handler):
    def get(self) -> None:
        self.set_header("Content-Type", work.TEXT)
        self.finish(work.HELLO)


class Agents(Handler):
    async def get(self) -> None:
        connections = await pool()
        self.finish_json(work.agents(await connections.fetch(work.AGENTS)))


class Write(Handler):
    async def get(self) -> None:
        connections = await pool()
        self.finish_json(work.written(await connections.fetch(work.WRITE)))


class RenderName(Handler):
    def get(self) -> None:
        self.render("name.html", name=work.NAME)


class RenderTable(Handler):
    def get(self) -> None:
        self.render("table.html", rows=work.TABLE)


class Fortunes(Handler):
    async def get(self) -> None:
        connections = await pool()
        found = work.fortunes(await connections.fetch(work.FORTUNES))
        self.render("fortunes.html", fortunes=found)


class Items(Handler):
    async def post(self) -> None:
        connections = await pool()
        values = work.to_create(json.loads(self.request.body))
        self.set_status(201)
        self.finish_json(work.created(await connections.fetch(work.CREATE, *values)))


class Item(Handler):
    async def get(self, item_id: str) -> None:
        connections = await pool()
        self.finish_found(work.item(await connections.fetch(work.READ, int(item_id))))

    async def put(self, item_id: str) -> None:
        connections = await pool()
        values = work.to_update(int(item_id), json.loads(self.request.body))
        self.finish_found(work.updated(await connections.fetch(work.UPDATE, *values)))

    def finish_found(self, item: dict[str, Any] | None) -> None:
        if item is None:
            raise HTTPError(404)
        self.finish_json(item)


class Lookup(Handler):
    def get(self) -> None:
        self.finish_json({"found": work.lookup()})


class Sleep(Handler):
    async def get(self) -> None:
        await gen.sleep(0.05)
        self.finish_json({"slept_ms": 50})


class SeveralSleeps(Handler):
    async def get(self) -> None:
        await gen.sleep(0.05)
        await gen.multi([gen.sleep(0.05), gen.sleep(0.05)])
        with contextlib.suppress(gen.TimeoutError):
            await gen.with_timeout(timedelta(milliseconds=25), gen.sleep(0.05))
        self.finish_json({"slept_ms": 125})


class Cpu(Handler):
    def get(self) -> None:
        work.cpu_work()
        self.finish_json({"worked_ms": 500})


class CpuInExecutor(Handler):
    async def get(self) -> None:
        await IOLoop.current().run_in_executor(None, work.cpu_work)
        self.finish_json({"worked_ms": 500})


class Upstream(Handler):
    async def get(self) -> None:
        answer = await AsyncHTTPClient().fetch(os.environ["LAB_UPSTREAM"])
        self.set_header("Content-Type", work.TEXT)
        self.finish(answer.body)


class Book(Handler):
    async def get(self) -> None:
        await gen.sleep(work.book_delay())
        self.finish(work.book())


application = Application(
    [
        ("/index", Index),
        ("/hello", Hello),
        ("/agents", Agents),
        ("/write", Write),
        ("/render_name", RenderName),
        ("/render_table", RenderTable),
        ("/fortunes", Fortunes),
        ("/crud/items", Items),
        (r"/crud/items/(\d+)", Item),
        ("/lookup", Lookup),
        ("/sleep", Sleep),
        ("/complex", SeveralSleeps),
        ("/cpu", Cpu),
        ("/cpu_in_executor", CpuInExecutor),
        ("/upstream", Upstream),
        ("/book", Book),
    ],
    template_loader=DictLoader(TEMPLATES),
    # No log of requests.
    log_function=lambda handler: None,
)


async def main(listener: socket.socket) -> None:
    await pool()
    server = HTTPServer(application)
    server.add_socket(listener)
    await asyncio.Event().wait()


if __name__ == "__main__":
    work.set_event_loop()
    work.serve(lambda listener: asyncio.run(main(listener)))
else:
    # Gunicorn and uWSGI load this in the worker, before they start its loop.
    work.set_event_loop()
    IOLoop.current().add_callback(pool)
