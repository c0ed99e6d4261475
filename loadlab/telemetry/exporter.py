"""Scrape a host's node_exporter from the controller."""

import contextlib
import http.client
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass

from loadlab.run import formatting
from loadlab.run.errors import LabError
from loadlab.telemetry import node_exporter

# Limits of one scrape, whatever the host answers: seconds in total, and bytes. A page has some 50
# kB.
SCRAPE_S = 2.0
PAGE_BYTES_MAX = 4 << 20
# Readings of a clock; the one with the quickest answer counts.
READINGS = 5


@dataclass(frozen=True)
class Page:
    """A page of an exporter."""

    #: The middle of the request, unix seconds of the controller's clock: over a kept connection the
    #: host then read its clock, up to half of the difference between the two ways.
    t: float
    took_s: float  #: Seconds from the request to the first byte of the answer.
    text: str


class Exporter:
    """The exporter of an untrusted host, read over one connection that is kept.

    A new connection, which goes through SSH at first, would put the reading of the clock off the
    middle of the request by half a round trip.
    """

    def __init__(self, url: str) -> None:
        where = urllib.parse.urlsplit(url)
        self._path = where.path
        self._link = http.client.HTTPConnection(where.netloc, timeout=SCRAPE_S)
        self._ahead_s = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the unix seconds of the controller's clock as if nobody had set it meanwhile."""
        return time.monotonic() + self._ahead_s

    def close(self) -> None:
        self._link.close()

    def read(self) -> Page:
        """Return a page, over a new connection where there is none or the kept one ended.

        Raises OSError, ValueError or HTTPException unless the page arrives whole within SCRAPE_S,
        with status 200 and at most PAGE_BYTES_MAX bytes. Redirects are not followed, so a host
        cannot lead to another address.
        """
        kept = self._link.sock is not None
        try:
            return self._read()
        except ConnectionError:
            if not kept:
                raise
            return self._read()

    def _read(self) -> Page:
        link, late, whole = self._link, threading.Event(), False
        if link.sock is None:
            link.connect()
        # The socket's timeout applies to each wait, so a slow sender could avoid it: limit the
        # total time too.
        end = threading.Timer(SCRAPE_S, cut, [link.sock, late])
        end.start()
        try:
            began, begun = self.now(), time.monotonic()
            link.request("GET", self._path)
            answer = link.getresponse()
            took_s = time.monotonic() - begun
            text = answer.read(PAGE_BYTES_MAX + 1)
            if late.is_set():
                raise TimeoutError
            if answer.status != 200:
                raise LabError(f"status {answer.status}")
            if len(text) > PAGE_BYTES_MAX:
                raise LabError(f"more than {PAGE_BYTES_MAX:,} bytes")
            if answer.length:
                raise http.client.IncompleteRead(text, answer.length)
            page = Page(began + took_s / 2, took_s, text.decode())
            whole = True
        except (OSError, http.client.HTTPException):
            if late.is_set():
                raise TimeoutError(f"no end after {SCRAPE_S} s") from None
            raise
        finally:
            end.cancel()
            if not whole:
                link.close()
        return page

    def block(self) -> str:
        """Return the block of one scrape for the recording, also where the scrape failed.

        Raises ConnectionRefusedError where nothing listens.
        """
        now = self.now()
        try:
            page = self.read()
        except ConnectionRefusedError:
            raise
        except (OSError, ValueError, http.client.HTTPException) as problem:
            return node_exporter.failed_block(now, reason(problem))
        return node_exporter.block(page.t, page.text)


def forwarded(url: str) -> bool:
    """Return whether an exporter is read through SSH, whose port forward ends with SSH."""
    return (urllib.parse.urlsplit(url).hostname or "").startswith("127.")


def reason(problem: Exception) -> str:
    """Return an error with its kind, on one line."""
    return formatting.one_line(f"{type(problem).__name__}: {problem}")


def fetch(url: str) -> str:
    """Return one page of an untrusted host. Raises what Exporter.read() raises."""
    with contextlib.closing(Exporter(url)) as exporter:
        return exporter.read().text


def clock_ahead_s(url: str) -> float:
    """Return a host's clock minus the controller's in seconds.

    Raises ValueError where the exporter does not answer.
    """
    with contextlib.closing(Exporter(url)) as exporter:
        try:
            pages = [exporter.read() for _ in range(READINGS)]
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise LabError(f"the clock cannot be read at {url}: {reason(problem)}") from None
    best = min(pages, key=lambda page: page.took_s)
    block = node_exporter.block(best.t, best.text)
    return node_exporter.clock_offset(node_exporter.parse(block, url))


def cut(link: socket.socket, late: threading.Event) -> None:
    """Shut a connection down that takes too long, and set ``late``."""
    # Set first: the shutdown wakes the reader, which then checks it.
    late.set()
    # The connection may have closed just now.
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
