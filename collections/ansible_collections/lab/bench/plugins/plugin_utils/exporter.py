"""Scrape a host's node_exporter from the controller."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.parse

from loadlab.core import formatting
from loadlab.telemetry import node_exporter

# Limits of one scrape, whatever the host answers: seconds in total, and bytes. A page has some 50
# kB.
SCRAPE_S = 2.0
PAGE_BYTES_MAX = 4 << 20


def page(url: str) -> str:
    """Return the block of one scrape for the recording, also where the scrape failed."""
    now = time.time()
    try:
        return node_exporter.block(now, fetch(url))
    except (OSError, ValueError, http.client.HTTPException) as problem:
        return node_exporter.failed_block(
            now, formatting.one_line(f"{type(problem).__name__}: {problem}")
        )


def fetch(url: str) -> str:
    """Return the page of an untrusted host.

    Raises OSError, ValueError or HTTPException unless the page arrives whole within SCRAPE_S, with
    status 200 and at most PAGE_BYTES_MAX bytes. Redirects are not followed, so a host cannot lead
    to another address.
    """
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=SCRAPE_S)
    with contextlib.closing(connection):
        connection.connect()
        # The socket's timeout applies to each wait, so a slow sender could avoid it: limit the
        # total time too.
        late = threading.Event()
        end = threading.Timer(SCRAPE_S, cut, [connection.sock, late])
        end.start()
        try:
            connection.request("GET", where.path)
            answer = connection.getresponse()
            text = answer.read(PAGE_BYTES_MAX + 1)
            if late.is_set():
                raise TimeoutError(f"no end after {SCRAPE_S} s")
        finally:
            end.cancel()
    if answer.status != 200:
        raise ValueError(f"status {answer.status}")
    if len(text) > PAGE_BYTES_MAX:
        raise ValueError(f"more than {PAGE_BYTES_MAX:,} bytes")
    if answer.length:
        raise http.client.IncompleteRead(text, answer.length)
    return text.decode()


def cut(link: socket.socket, late: threading.Event) -> None:
    """Shut a connection down that takes too long, and set ``late``."""
    # Set first: the shutdown wakes the reader, which then checks it.
    late.set()
    # The connection may have closed just now.
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
