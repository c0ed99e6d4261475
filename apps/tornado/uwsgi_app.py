"""The same handlers on uWSGI's event loop (tornado or asyncio), one greenlet for each request."""

from collections.abc import Callable, Iterable
from typing import Any

import greenlet
from app import application as app
from tornado.concurrent import Future
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.ioloop import IOLoop


class Connection(HTTPConnection):
    """Keeps an answer until it is whole, then goes on with the greenlet that waits for it."""

    def __init__(self) -> None:
        self.finished = False
        self.body: list[bytes] = []
        self.waiting = greenlet.getcurrent()

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        pass

    def write_headers(
        self,
        start_line: RequestStartLine | ResponseStartLine,
        headers: HTTPHeaders,
        chunk: bytes | None = None,
    ) -> Future[None]:
        self.start_line, self.headers = start_line, headers
        return self.write(chunk or b"")

    def write(self, chunk: bytes) -> Future[None]:
        self.body.append(chunk)
        written: Future[None] = Future()
        written.set_result(None)
        return written

    def finish(self) -> None:
        self.finished = True
        # Not from here: the handler has not returned yet.
        IOLoop.current().add_callback(self.waiting.switch)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    headers = HTTPHeaders()
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            headers.add(name.removeprefix("HTTP_").replace("_", "-"), value)
    connection = Connection()
    app(
        HTTPServerRequest(
            start_line=RequestStartLine(
                environ["REQUEST_METHOD"], environ["REQUEST_URI"], environ["SERVER_PROTOCOL"]
            ),
            headers=headers,
            body=environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)),
            connection=connection,
        )
    )
    # The loop runs in the parent, and so do the handlers, while this waits.
    while not connection.finished:
        connection.waiting.parent.switch()
    start_response(
        f"{connection.start_line.code} {connection.start_line.reason}",
        list(connection.headers.get_all()),
    )
    return connection.body
