"""A server that answers what no server should; stands in for an application on the host.

Runs where the application's service would, listens and tells of its readiness as that does. With
HONEST in the environment its first answer is the contract's of /hello, as the load script asks once
before it loads; then every other one has no end.
"""

import asyncio
import gzip
import os
import sys
from itertools import count

import work  # type: ignore[import-not-found]

# For a terminal, a page, a shell, a template of Ansible's, a path, and for who takes it for text.
EVIL = (
    b"\x1b]0;owned\x07\x1b[31m<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    b"`touch /tmp/owned`$(touch /tmp/owned){{ lookup('pipe', 'touch /tmp/owned') }}"
    b"../../../etc/passwd\0\r\n\xff\xfe\x80"
)
HEADERS = (
    'text/html"><script>alert(1)</script>\r\nX-Evil: \x1b[31m$(touch /tmp/owned)\r\n'
    "Set-Cookie: a=../../b"
)
HONEST = os.environ.get("HONEST")
BOMB = gzip.compress(bytes(1 << 26))

asked = count()


def head(kind: str, more: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}\r\n\r\n".encode()


async def answer(path: str, writer: asyncio.StreamWriter) -> None:
    """One answer; those without an end last until the other side goes."""
    before = next(asked)
    if HONEST and before == 0:
        body = work.HELLO.encode()
        writer.write(head(work.TEXT, f"Content-Length: {len(body)}") + body)
    elif path == "/hello" and not (HONEST and before % 2):
        writer.write(head(work.TEXT, "Transfer-Encoding: chunked"))
        while True:
            writer.write(b"10000\r\n" + EVIL.ljust(1 << 16, b"x") + b"\r\n")
            await writer.drain()
    elif path == "/lookup":
        more = f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}"
        writer.write(head(work.JSON, more) + BOMB)
    elif path == "/upstream":
        writer.write(head(HEADERS, f"Content-Length: {len(EVIL)}") + EVIL)
    else:
        writer.write(head(work.JSON, f"Content-Length: {len(EVIL)}", "500 Oops") + EVIL)
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            await answer(request.split()[1].decode(), writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # The other side has gone.
    finally:
        writer.close()


async def main() -> None:
    # Its log is read by the controller too.
    sys.stderr.buffer.write(EVIL + b"\n")
    sys.stderr.flush()
    # asyncio listens again, with a queue of its own.
    queue = int(os.environ["LAB_BACKLOG"])
    server = await asyncio.start_unix_server(serve, sock=work.listen(), backlog=queue)
    work.ready()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
