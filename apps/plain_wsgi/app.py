"""The lab's endpoints on WSGI alone, without a framework. Contract: files/endpoints.yml."""

import time
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import database
import work

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

# The Content-Type and the body.
Answer = tuple[str, bytes]

NAME = (
    "<!DOCTYPE html><html><head><title>Hello</title></head>"
    "<body><p>Hello, {name}!</p></body></html>"
)
TABLE = (
    "<!DOCTYPE html><html><head><title>Table</title></head><body>"
    "<table>{rows}</table></body></html>"
)


def index() -> Answer:
    return work.JSON, work.dumps({"hello": "world"})


def hello() -> Answer:
    return work.TEXT, work.HELLO.encode()


def agents() -> Answer:
    return work.JSON, work.dumps(work.agents(database.query(work.AGENTS)))


def write() -> Answer:
    return work.JSON, work.dumps(work.written(database.query(work.WRITE)))


def render_name() -> Answer:
    return work.HTML, NAME.format(name=escape(work.NAME)).encode()


def render_table() -> Answer:
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in work.TABLE
    )
    return work.HTML, TABLE.format(rows=rows).encode()


def lookup() -> Answer:
    return work.JSON, work.dumps({"found": work.lookup()})


def sleep() -> Answer:
    time.sleep(0.05)
    return work.JSON, work.dumps({"slept_ms": 50})


ROUTES = {
    "/index": index,
    "/hello": hello,
    "/agents": agents,
    "/write": write,
    "/render_name": render_name,
    "/render_table": render_table,
    "/lookup": lookup,
    "/sleep": sleep,
}


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    handler = ROUTES.get(environ["PATH_INFO"])
    if handler:
        status = "200 OK"
        content_type, body = handler()
    else:
        status, content_type, body = "404 Not Found", work.TEXT, b"Not found"
    headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body]
