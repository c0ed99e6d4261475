"""The script that systemd waits for where a server does not say when it is ready."""

import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "roles/app_server/files/answers.py"


def ask(listen: str, pid: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, listen, str(pid)], stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_readiness_is_the_first_answer_whatever_it_is(tmp_path: Path, family: str) -> None:
    class Server(http.server.HTTPServer):
        address_family = socket.AF_UNIX if family == "unix" else socket.AF_INET

        def server_bind(self) -> None:
            # HTTPServer's own looks for the name of the address.
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()

        def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
            connection, _ = super().get_request()
            return connection, ("", 0)

    class NotFound(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    path = tmp_path / "socket"
    bound: str | tuple[str, int] = str(path) if family == "unix" else ("127.0.0.1", 0)
    server = Server(bound, NotFound, bind_and_activate=False)  # type: ignore[arg-type]
    server.server_bind()
    where = server.server_address
    listen = f"unix:{path}" if family == "unix" else f"127.0.0.1:{where[1]}"
    waiting = ask(listen, os.getpid())
    # It is bound and does not listen yet.
    time.sleep(0.3)
    assert waiting.poll() is None
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        assert waiting.wait(timeout=20) == 0
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_that_ends_first_is_named(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    waiting = ask(f"unix:{tmp_path / 'socket'}", gone.pid)
    _, said = waiting.communicate(timeout=20)
    assert waiting.returncode == 1
    assert f"process {gone.pid} ended before it answered on unix:" in said
