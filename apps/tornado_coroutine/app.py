"""The lab's endpoints on Tornado's own coroutines. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import work
from tornado import gen
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.template import DictLoader
from tornado.web import Application, RequestHandler

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
}

# Its own limit of 10 requests at once would be what is measured.
AsyncHTTPClient.configure(None, max_clients=10_000)


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


class RenderName(Handler):
    def get(self) -> None:
        self.render("name.html", name=work.NAME)


class RenderTable(Handler):
    def get(self) -> None:
        self.render("table.html", rows=work.TABLE)


class Lookup(Handler):
    def get(self) -> None:
        self.finish_json({"found": work.lookup()})


class Sleep(Handler):
    @gen.coroutine
    def get(self) -> Generator[Any, Any, None]:
        yield gen.sleep(0.05)
        self.finish_json({"slept_ms": 50})


class SeveralSleeps(Handler):
    @gen.coroutine
    def get(self) -> Generator[Any, Any, None]:
        yield gen.sleep(0.05)
        yield [gen.sleep(0.05), gen.sleep(0.05)]
        with contextlib.suppress(gen.TimeoutError):
            yield gen.with_timeout(timedelta(milliseconds=25), gen.sleep(0.05))
        self.finish_json({"slept_ms": 125})


class Upstream(Handler):
    @gen.coroutine
    def get(self) -> Generator[Any, Any, None]:
        answer = yield AsyncHTTPClient().fetch(os.environ["LAB_UPSTREAM"])
        self.set_header("Content-Type", work.TEXT)
        self.finish(answer.body)


application = Application(
    [
        ("/index", Index),
        ("/hello", Hello),
        ("/render_name", RenderName),
        ("/render_table", RenderTable),
        ("/lookup", Lookup),
        ("/sleep", Sleep),
        ("/complex", SeveralSleeps),
        ("/upstream", Upstream),
    ],
    template_loader=DictLoader(TEMPLATES),
    # No log of requests.
    log_function=lambda handler: None,
)
# Before Gunicorn makes its worker's loop too, which loads this.
work.set_event_loop()


async def main(listener: socket.socket) -> None:
    server = HTTPServer(application)
    server.add_socket(listener)
    await asyncio.Event().wait()


if __name__ == "__main__":
    work.serve(lambda listener: asyncio.run(main(listener)))
