"""When the clients of one load begin it, told by a distant controller.

Ansible, its commands and the reading of the clocks are real. SSH is a script that takes its round
trips and then runs the command here; each client's clock is a server that takes its way and is
wrong by hours. docs/runs.md has the figures.
"""

import contextlib
import http.server
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.telemetry import node_exporter
from tests.unit import plays, stand_ins

LEAD_S = 8
# Farther apart than the clients of one load would be: they are all near their server.
ROUND_TRIPS_S = (0.01, 0.15)
# A command over a persistent connection opens a channel and asks for the command.
SSH = """
for word; do host=$command command=$word; done
sleep "$(cat {folder}/$host)"
exec sh -c "$command"
"""


@dataclass(frozen=True)
class Client:
    name: str
    round_trip_s: float
    ahead_s: float

    def exporter(self) -> http.server.ThreadingHTTPServer:
        """Its node_exporter at the end of a port forward, which takes a round trip to open."""
        client = self
        others = [name for name in node_exporter._PLAIN if name != node_exporter.CLOCK]

        class Page(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                time.sleep(client.round_trip_s)

            def do_GET(self) -> None:
                time.sleep(client.round_trip_s / 2)
                now = time.time() + client.ahead_s
                lines = [f"{node_exporter.CLOCK} {now:.6f}", *(f"{name} 0" for name in others)]
                page = "\n".join([*lines, ""]).encode()
                time.sleep(client.round_trip_s / 2)
                self.send_response(200)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)


@dataclass(frozen=True)
class Told:
    """What became of one start: when the first and the last client was told, the agreed start of
    each by the controller's clock, and when Ansible went on; unix seconds."""

    first: float
    last: float
    starts: list[float]

    @property
    def spread_s(self) -> float:
        return max(self.starts) - min(self.starts)

    @property
    def left_s(self) -> float:
        """What remained for the last client until it had to begin."""
        return min(self.starts) - self.last


@contextlib.contextmanager
def exporters(clients: list[Client]) -> Iterator[dict[str, str]]:
    servers = {one.name: one.exporter() for one in clients}
    for server in servers.values():
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield {name: f"http://127.0.0.1:{one.server_address[1]}/m" for name, one in servers.items()}
    for server in servers.values():
        server.shutdown()
        server.server_close()


def begin(folder: Path, clients: list[Client]) -> Told:
    ssh = stand_ins.put(folder, {"ssh": SSH.format(folder=folder)}) / "ssh"
    stand_ins.tree(folder, {client.name: f"{2 * client.round_trip_s}\n" for client in clients})
    settings = {"ansible_ssh_executable": str(ssh), "ansible_user": "root"}
    inventory = {"all": {"hosts": {one.name: settings for one in clients}}}
    with exporters(clients) as urls:
        offers = [
            {
                "name": one.name,
                "exporter": urls[one.name],
                "begin": f"echo $(date +%s.%N) $BEGIN_AT >{folder}/{one.name}.told",
                "end": "true",
                "stop": "true",
            }
            for one in clients
        ]
        task = {"lab.bench.begin_load": {"offers": offers, "seconds": LEAD_S}}
        play = {"hosts": "client0", "gather_facts": False, "tasks": [task]}
        done = plays.run(folder, inventory, play)
    assert done.returncode == 0, done.stdout + done.stderr
    words = {one: (folder / f"{one.name}.told").read_text().split() for one in clients}
    told = [float(at) for at, _ in words.values()]
    starts = [float(begin) - one.ahead_s for one, (_, begin) in words.items()]
    return Told(min(told), max(told), starts)


@pytest.fixture(scope="module")
def of_clients(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Told]:
    rng = random.Random(1)
    found = {}
    for count in (4, 20):
        trips = [*ROUND_TRIPS_S, *(rng.uniform(*ROUND_TRIPS_S) for _ in range(count - 2))]
        clients = [
            Client(f"client{number}", trip, rng.uniform(-20_000, 20_000))
            for number, trip in enumerate(trips)
        ]
        found[count] = begin(tmp_path_factory.mktemp("starts") / str(count), clients)
        one = found[count]
        print(
            f"{count} clients: told within {one.last - one.first:.2f} s, "
            f"{one.left_s - LEAD_S:.2f} s before need, starts within {1000 * one.spread_s:.0f} ms"
        )
    return found


@pytest.mark.parametrize("count", [4, 20])
def test_clients_begin_within_50_ms_whatever_their_distance(
    of_clients: dict[int, Told], count: int
) -> None:
    assert of_clients[count].spread_s < 0.05 < THRESHOLDS.start_spread_max_s


@pytest.mark.parametrize("count", [4, 20])
def test_every_client_is_told_in_time(of_clients: dict[int, Told], count: int) -> None:
    assert of_clients[count].left_s >= LEAD_S


def test_twenty_clients_are_told_about_as_quickly_as_four(of_clients: dict[int, Told]) -> None:
    four, twenty = (of_clients[count].last - of_clients[count].first for count in (4, 20))
    # One after another they would take five times as long.
    assert twenty < 2 * four + 1
