"""The slow service behind /upstream: answers any GET with "done" after half a second.

Listens on 127.0.0.1 at the port that LAB_UPSTREAM_PORT names. One process waits for thousands of
requests at once; it closes no idle connection, so that none breaks under an application.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket

DELAY_S = 0.5
BACKLOG = 4096
# Bytes of a request's head at most.
LIMIT = 16384

REQUEST = re.compile(rb"GET [!-~]+ HTTP/1\.([01])")
FIELD = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+):[ \t]*([^\0\r\n]*)")

DONE = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 4\r\n"
    b"Connection: %s\r\n"
    b"\r\n"
    b"done"
)
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def stays_open(head: bytes) -> bool:
    """Whether the connection outlives this request; ValueError where it is not a plain GET."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = REQUEST.fullmatch(first)
    if not request:
        raise ValueError(first)
    fields: dict[bytes, bytes] = {}
    for line in lines:
        field = FIELD.fullmatch(line)
        if not field:
            raise ValueError(line)
        fields[field[1].lower()] = field[2].strip().lower()
    if b"transfer-encoding" in fields or fields.get(b"content-length", b"0") != b"0":
        raise ValueError("a body would be taken for the next request")
    connection = fields.get(b"connection", b"")
    return b"keep-alive" in connection if request[1] == b"0" else b"close" not in connection


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection's requests in the order in which they come, each in its own time."""
    try:
        keep = True
        while keep:
            keep = stays_open(await reader.readuntil(b"\r\n\r\n"))
            await asyncio.sleep(DELAY_S)
            writer.write(DONE % (b"keep-alive" if keep else b"close"))
            await writer.drain()
    except (ValueError, asyncio.LimitOverrunError):
        writer.write(REFUSED)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # The other side has gone.
    finally:
        writer.close()


def ready() -> None:
    """Tell systemd that connections are accepted from now on."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + where[1:] if where.startswith("@") else where)
            notify.send(b"READY=1")


async def main() -> None:
    port = int(os.environ["LAB_UPSTREAM_PORT"])
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=BACKLOG, limit=LIMIT)
    ready()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
