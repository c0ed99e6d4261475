"""A host's node_exporter, asked from the controller."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.parse

from loadlab.core import formatting
from loadlab.telemetry import node_exporter

# Of one scrape, whatever the host answers: seconds in all, and bytes; a page has some 50 kB.
SCRAPE_S = 2.0
PAGE_BYTES_MAX = 4 << 20


def page(url: str) -> str:
    """One scrape, as text or as a failure that the recording keeps."""
    now = time.time()
    try:
        return node_exporter.block(now, fetch(url))
    except (OSError, ValueError, http.client.HTTPException) as problem:
        return node_exporter.failed_block(
            now, formatting.one_line(f"{type(problem).__name__}: {problem}")
        )


def fetch(url: str) -> str:
    """The page of a host that is not trusted: in SCRAPE_S it is there, is 200 and is no longer than
    PAGE_BYTES_MAX, or an OSError, ValueError or HTTPException says why not.

    Nothing is redirected: what a host says leads to no other address.
    """
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=SCRAPE_S)
    with contextlib.closing(connection):
        connection.connect()
        # The timeout is of each wait: a byte now and then would do for it.
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
    # Said first: a reader that the shutdown wakes must know why.
    late.set()
    # It may have come to its end just now.
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
