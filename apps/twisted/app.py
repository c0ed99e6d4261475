"""The lab's endpoints on Twisted Web. Contract: files/endpoints.yml."""

# Twisted's names are its own.
# ruff: noqa: N802, N815

import os
import socket
from collections.abc import Iterator
from typing import Any

import work
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, gatherResults
from twisted.internet.task import deferLater
from twisted.web.iweb import IRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site
from twisted.web.template import Element, Tag, XMLString, flattenString, renderer, tags


def wait(seconds: float) -> Deferred[None]:
    # Importing the reactor makes it: not before the workers are forked, which would share it.
    from twisted.internet import reactor

    return deferLater(reactor, seconds)


def finish(request: IRequest, body: bytes) -> None:
    # Without a length, Twisted would send chunks.
    request.setHeader("Content-Length", str(len(body)))
    request.write(body)
    request.finish()


class JSONResource(Resource):
    isLeaf = True

    def value(self) -> Any:
        raise NotImplementedError

    def render_GET(self, request: IRequest) -> bytes:
        request.setHeader("Content-Type", work.JSON)
        return work.dumps(self.value())


class Index(JSONResource):
    def value(self) -> Any:
        return {"hello": "world"}


class Lookup(JSONResource):
    def value(self) -> Any:
        return {"found": work.lookup()}


class Hello(Resource):
    isLeaf = True

    def render_GET(self, request: IRequest) -> bytes:
        request.setHeader("Content-Type", work.TEXT)
        return work.HELLO.encode()


class AsyncJSONResource(Resource):
    isLeaf = True

    async def value(self) -> Any:
        raise NotImplementedError

    def render_GET(self, request: IRequest) -> int:
        request.setHeader("Content-Type", work.JSON)
        value = Deferred.fromCoroutine(self.value())
        value.addCallback(lambda value: finish(request, work.dumps(value)))
        value.addErrback(lambda failure: failure.trap(CancelledError))
        # Whoever asked has gone.
        request.notifyFinish().addErrback(lambda failure: value.cancel())
        return NOT_DONE_YET


class Sleep(AsyncJSONResource):
    async def value(self) -> Any:
        await wait(0.05)
        return {"slept_ms": 50}


class SeveralSleeps(AsyncJSONResource):
    async def value(self) -> Any:
        from twisted.internet import reactor

        await wait(0.05)
        await gatherResults([wait(0.05), wait(0.05)])
        try:
            await wait(0.05).addTimeout(0.025, reactor)
        except TimeoutError:
            return {"slept_ms": 125}


class Name(Element):
    loader = XMLString(
        """<html xmlns:t="http://twistedmatrix.com/ns/twisted.web.template/0.1">"""
        """<head><title>Hello</title></head>"""
        """<body><p>Hello, <t:transparent t:render="name" />!</p></body></html>"""
    )

    @renderer
    def name(self, request: IRequest, tag: Tag) -> Tag:
        return tag(work.NAME)


class Table(Element):
    loader = XMLString(
        """<html xmlns:t="http://twistedmatrix.com/ns/twisted.web.template/0.1">"""
        """<head><title>Table</title></head>"""
        """<body><table><tr t:render="rows" /></table></body></html>"""
    )

    @renderer
    def rows(self, request: IRequest, tag: Tag) -> Iterator[Tag]:
        for row in work.TABLE:
            yield tag.clone()([tags.td(cell) for cell in row])


class Page(Resource):
    isLeaf = True

    def __init__(self, element: Element) -> None:
        super().__init__()
        self.element = element

    def render_GET(self, request: IRequest) -> int:
        request.setHeader("Content-Type", work.HTML)
        # renderElement would put a newline after the document type, and send chunks.
        html = flattenString(request, self.element)
        html.addCallback(lambda html: finish(request, b"<!DOCTYPE html>" + html))
        return NOT_DONE_YET


class QuietSite(Site):
    def log(self, request: IRequest) -> None:
        pass


def site() -> Site:
    root = Resource()
    root.putChild(b"index", Index())
    root.putChild(b"hello", Hello())
    root.putChild(b"render_name", Page(Name()))
    root.putChild(b"render_table", Page(Table()))
    root.putChild(b"lookup", Lookup())
    root.putChild(b"sleep", Sleep())
    root.putChild(b"complex", SeveralSleeps())
    return QuietSite(root, timeout=75)


def run(listener: socket.socket) -> None:
    from twisted.internet import reactor

    reactor.adoptStreamPort(listener.fileno(), listener.family, site())
    # On a Unix socket, Twisted has listened again with a backlog of 50.
    listener.listen(int(os.environ["LAB_BACKLOG"]))
    # Twisted's end would have every worker remove the Unix socket, which only one can.
    reactor.run(installSignalHandlers=False)


if __name__ == "__main__":
    work.serve(run)
