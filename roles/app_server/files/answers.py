"""Wait until a server answers: for those that do not tell systemd when they are ready.

Usage: answers.py LISTEN PID, with LISTEN as unix:<path> or <address>:<port>, and the server's
process. Ends with status 1 if that process ends first; systemd limits how long it takes.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

# An application that answers slowly is asked again, beside those requests that still wait.
PATIENCE_S = 2


def answers(listen: str) -> bool:
    """Return whether an HTTP request is answered, whatever the answer."""
    path = listen.removeprefix("unix:")
    address, _, port = listen.rpartition(":")
    family = socket.AF_INET if path == listen else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect((address, int(port)) if path == listen else path)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
        except OSError:
            return False


def main(listen: str, pid: str) -> None:
    while not answers(listen):
        if not Path("/proc", pid).exists():
            raise SystemExit(f"process {pid} ended before it answered on {listen}")
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
