"""The telemetry of a host during a load, over real connections on the loopback that really end."""

import contextlib
import gzip
import http.server
import itertools
import socket
import socketserver
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlab.telemetry import recording
from loadlab.telemetry.exporter import Exporter
from loadlab.telemetry.recording import Recording

# Ten times as fast as in a run.
EVERY_S, APART_S = 0.1, 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "EVERY_S", EVERY_S)
    monkeypatch.setattr(recording, "APART_S", APART_S)


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer = "node_time_seconds 1\n"
    takes_s = 0.0

    def do_GET(self) -> None:
        time.sleep(self.takes_s)
        self.send_response(200)
        # As node_exporter does.
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(self.answer):x}\r\n{self.answer}\r\n0\r\n\r\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def exporter(takes_s: float = 0.0) -> contextlib.AbstractContextManager[int]:
    handler = type("Slow", (Page,), {"takes_s": takes_s})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    return serving(server)


@contextlib.contextmanager
def recorded(path: Path, port: int, **options: Any) -> Iterator[None]:
    """Record an exporter for as long as the block takes."""
    over = threading.Event()
    recording = Recording(path, f"http://127.0.0.1:{port}/metrics", over, **options)
    yield
    over.set()
    recording.end()


class Forward:
    """A port forward such as that of SSH: it ends with all connections through it."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._open: list[socket.socket] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.begins = 0
        self.begin()

    def begin(self) -> None:
        self.begins += 1
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)


def blocks(path: Path) -> list[tuple[float, str]]:
    """When each scrape was made, and why it failed."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    marked = [line.removeprefix("# scrape ") for line in lines if line.startswith("# scrape ")]
    return [(float(t), reason) for t, _, reason in (line.partition(" failed: ") for line in marked)]


def test_a_host_is_scraped_at_equal_distances_and_once_more_at_the_end(tmp_path: Path) -> None:
    with exporter() as port, recorded(tmp_path / "a" / "one.gz", port):
        time.sleep(1.02)
    scrapes = blocks(tmp_path / "a" / "one.gz")
    assert [reason for _, reason in scrapes] == [""] * len(scrapes)
    assert 6 <= len(scrapes) <= 12
    apart = [later[0] - earlier[0] for earlier, later in itertools.pairwise(scrapes)]
    # Beside other work a scrape is late, and the next is not.
    assert statistics.median(apart) >= APART_S - 0.01


def test_no_scrape_is_due_as_the_load_ends(tmp_path: Path) -> None:
    with exporter() as port, recorded(tmp_path / "one.gz", port, ends_s=3 * EVERY_S):
        time.sleep(3.1 * EVERY_S)
    # At 0, 1, 2 and 3.1 times EVERY_S; fewer on a slow machine.
    assert 2 <= len(blocks(tmp_path / "one.gz")) <= 4


def test_a_connection_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = []
    connect = socket.create_connection

    def counted(*args: object, **options: object) -> socket.socket:
        connections.append(args)
        return connect(*args, **options)  # type: ignore[arg-type]

    with exporter() as port:
        monkeypatch.setattr(socket, "create_connection", counted)
        with contextlib.closing(Exporter(f"http://127.0.0.1:{port}/metrics")) as kept:
            pages = [kept.read() for _ in range(3)]
    assert len(connections) == 1
    assert {page.text for page in pages} == {Page.answer}
    # The time of each is the middle of its request.
    assert all(0 < page.took_s < 1 and abs(page.t - time.time()) < 5 for page in pages)


def test_a_host_that_is_slow_delays_no_other(tmp_path: Path) -> None:
    with (
        exporter() as quick, exporter(takes_s=0.6) as slow,
        recorded(tmp_path / "quick", quick), recorded(tmp_path / "slow", slow),
    ):  # fmt: skip
        time.sleep(1.5)
    assert len(blocks(tmp_path / "slow")) <= 4
    assert len(blocks(tmp_path / "quick")) >= 8


def test_only_the_seconds_without_a_connection_are_missing(tmp_path: Path) -> None:
    with exporter() as port:
        forward = Forward(port)
        reachable = threading.Event()

        def reconnect() -> None:
            if not reachable.is_set():
                raise ConnectionError("Connection timed out")
            forward.begin()

        with recorded(tmp_path / "one", forward.port, reconnect=reconnect):
            time.sleep(0.5)
            forward.end()
            ended = time.time()
            time.sleep(0.5)
            reachable.set()
            back = time.time()
            time.sleep(1)
        forward.end()
    scrapes = blocks(tmp_path / "one")
    missing = [(t, reason) for t, reason in scrapes if reason]
    assert missing
    assert all(ended - EVERY_S < t < back + 5 * EVERY_S for t, _ in missing)
    assert missing[0][1].startswith("ConnectionRefusedError: ")
    assert missing[0][1].endswith("; ConnectionError: Connection timed out")
    assert forward.begins == 2
    after = [t for t, reason in scrapes if t > back and not reason]
    assert len(after) >= 5


def test_without_a_forward_nothing_is_connected_anew(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with recorded(tmp_path / "one", port):
        time.sleep(0.2)
    kinds = {reason.partition(":")[0] for _, reason in blocks(tmp_path / "one")}
    assert kinds == {"ConnectionRefusedError"}


def test_a_recording_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        Recording(tmp_path / "one", "http://127.0.0.1:9/metrics", threading.Event())
