"""The same resources on uWSGI's asyncio loop, one greenlet for each request."""

# Twisted's names are its own, and its reactor is chosen before it is imported.
# ruff: noqa: E402, N802, N815

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import greenlet
from twisted.internet import asyncioreactor

# Before anything imports the reactor. uWSGI runs this loop once it has loaded the application.
asyncioreactor.install(asyncio.get_event_loop())

from app import site
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.web.http_headers import Headers
from twisted.web.iweb import IRequest

reactor.startRunning(installSignalHandlers=False)


class Channel:
    """Keeps an answer until it is whole, then goes on with the greenlet that waits for it."""

    site = site()
    factory = None
    transport = None

    def __init__(self) -> None:
        self.finished = False
        self.body: list[bytes] = []
        self.waiting: greenlet.greenlet | None = None

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "0.0.0.0", 0)

    getHost = getPeer

    def isSecure(self) -> bool:
        return False

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        self.status = b"%s %s" % (code, reason)
        self.headers = headers

    def write(self, data: bytes) -> None:
        self.body.append(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.body.extend(data)

    def requestDone(self, request: IRequest) -> None:
        self.finished = True
        if self.waiting:
            # Not from here: the request has not cleaned up yet.
            reactor.callLater(0, self.waiting.switch)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    channel = Channel()
    request = channel.site.requestFactory(channel)
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            request.requestHeaders.addRawHeader(name.removeprefix("HTTP_").replace("_", "-"), value)
    request.gotLength(0)
    request.requestReceived(
        environ["REQUEST_METHOD"].encode(),
        environ["REQUEST_URI"].encode(),
        environ["SERVER_PROTOCOL"].encode(),
    )
    channel.waiting = greenlet.getcurrent()
    # The loop runs in the parent, and so do the resources, while this waits.
    while not channel.finished:
        channel.waiting.parent.switch()
    start_response(
        channel.status.decode(),
        [
            (name.decode(), value.decode())
            for name, values in channel.headers.getAllRawHeaders()
            for value in values
        ],
    )
    return channel.body
