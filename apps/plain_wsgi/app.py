"""The lab's endpoints on WSGI alone, without a framework. Contract: files/endpoints.yml."""

import json
import time
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

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
FORTUNES = (
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body>"
    "<table><tr><th>id</th><th>message</th></tr>{rows}</table></body></html>"
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


def fortunes() -> Answer:
    rows = "".join(
        f"<tr><td>{number}</td><td>{escape(message)}</td></tr>"
        for number, message in work.fortunes(database.query(work.FORTUNES))
    )
    return work.HTML, FORTUNES.format(rows=rows).encode()


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
    "/fortunes": fortunes,
    "/lookup": lookup,
    "/sleep": sleep,
}


ITEMS = "/crud/items"


def crud(method: str, name: str, body: bytes) -> tuple[str, dict[str, Any]] | None:
    """Read, create or update an item; return status and answer, None where it is not there."""
    if method == "POST" and not name:
        values = work.to_create(json.loads(body))
        return "201 Created", work.created(database.query(database.CREATE, values))
    found = None
    if method == "GET" and name.isdecimal():
        found = work.item(database.query(database.READ, [int(name)]))
    elif method == "PUT" and name.isdecimal():
        values = work.to_update(int(name), json.loads(body))
        found = work.updated(database.query(database.UPDATE, values))
    return found and ("200 OK", found)


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    status, content_type, body = "404 Not Found", work.TEXT, b"Not found"
    if handler := ROUTES.get(path):
        status = "200 OK"
        content_type, body = handler()
    elif path.startswith(ITEMS):
        sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        name = path.removeprefix(ITEMS).removeprefix("/")
        if found := crud(environ["REQUEST_METHOD"], name, sent):
            status, content_type, body = found[0], work.JSON, work.dumps(found[1])
    headers = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body]
