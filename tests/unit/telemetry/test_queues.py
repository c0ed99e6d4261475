"""Accept queues: recorded by record-host.sh of sockets of this machine, and read by second."""

import gzip
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.model import AcceptQueue
from loadlab.telemetry import queues
from loadlab.telemetry.recordings import TelemetryError
from tests.unit import stand_ins
from tests.unit.builders import present

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "roles" / "telemetry" / "files"
RECORDED = ROOT / "tests" / "fixtures" / "queues" / "queues.jsonl.gz"
# When the load of the recording began.
START = 1795411061.05
SECONDS = [1.0, 2.0, 3.0, 4.0]
# What nginx logs during a load.
SAMPLED, FAILED = "request\t1.000\t0.001\t-\t-", "[alert] 768 worker_connections are not enough"


def accept_queue(service: Any, address: str, limit: int, *depth: int) -> AcceptQueue:
    return AcceptQueue(service=service, socket=address, limit=limit, depth=[*depth], mean_depth=0)


def test_queues_have_the_most_of_each_second() -> None:
    found = present(queues.accept_queues(queues.read(RECORDED), START, SECONDS))
    path = "/run/loadlab-fixture/app.sock"
    means = [queue.mean_depth for queue in found]
    # The mean is of all readings, five in each second.
    assert 20 < means[0] < 65
    assert [round(mean, 1) for mean in means[1:]] == [5.5, 0.0]
    assert [replace(queue, mean_depth=0) for queue in found] == [
        # The kernel lets one more in than the limit.
        accept_queue("application", path, 64, 0, 34, 65, 65),
        accept_queue("reverse_proxy", "127.0.0.1:8080", 511, 0, 14, 38, 0),
        accept_queue("reverse_proxy", "127.0.0.1:8081", 511, 0, 0, 0, 0),
    ]


def test_queues_of_a_second_without_a_reading_are_unknown() -> None:
    """A recorder that died, and a service that stopped."""
    readings = queues.read(RECORDED)
    begun = [one for one in readings if one.t < START + 2]
    found = present(queues.accept_queues(begun, START, SECONDS))
    assert [queue.depth for queue in found][:2] == [[0, 34, None, None], [0, 14, None, None]]
    # Nothing is known of a load that began later, or of one whose recording is empty.
    assert queues.accept_queues(begun, START + 2, SECONDS) is None
    assert queues.accept_queues([], START, SECONDS) is None


def test_queues_of_several_sockets_with_one_address_are_one() -> None:
    each = [queues.Queue("application", "127.0.0.1:8000", depth, 100) for depth in (3, 4)]
    found = queues.accept_queues([queues.Reading(START, each)], START, [1.0])
    one = accept_queue("application", "127.0.0.1:8000", 200, 7)
    assert found == [replace(one, mean_depth=7)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"t": 1.0}',
        b'{"t": 1.0, "queues": [{"service": "nginx", "socket": "a", "depth": -1, "limit": 2}]}',
        b'{"t": 1.0, "queues": [{"service": "<b>", "socket": "a", "depth": 1, "limit": 2}]}',
        b'{"t": 1.0, "que',
    ],
)
def test_queues_refuse_a_line_that_is_not_understood(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "queues.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"t": 0.5, "queues": []}\n' + line + b"\n"))
    with pytest.raises(TelemetryError, match=r"queues\.jsonl\.gz line 2 not understood"):
        queues.read(path)


@contextmanager
def waiting(listener: socket.socket, limit: int, many: int) -> Iterator[None]:
    """Let connections wait in a listener's accept queue."""
    listener.listen(limit)
    with ExitStack() as stack:
        for _ in range(many):
            client = stack.enter_context(socket.socket(listener.family))
            client.connect(listener.getsockname())
        yield


def recorded(folder: Path, suffix: str = "") -> list[queues.Reading]:
    """What record-host.sh leaves of this process, as a host's services nginx and application."""
    tools, control = folder / "tools", folder / "cgroup"
    (control / "of-nginx").mkdir(parents=True)
    (control / "of-nginx" / "cgroup.procs").write_text(f"{os.getpid()}\n")
    shutil.copytree(TOOLS, tools)
    script = tools / "record-host.sh"
    log = folder / "log"
    log.mkdir()
    (log / "loadlab.log").write_text("of an earlier load\n")
    (log / "error.log").write_text("error of an earlier load\n")
    text = script.read_text().replace("/sys/fs/cgroup", str(control))
    script.write_text(text)
    stand_ins.put(tools, {"systemctl": '[ "$4" != nginx.service ] || echo /of-nginx'})
    with subprocess.Popen(
        ["bash", str(script)],
        env={
            "PATH": stand_ins.before(tools),
            "DIR": str(folder / "out"),
            "SUFFIX": suffix,
            # The application has no processes.
            "REQUESTS": f"{log}/loadlab.log",
            "ERRORS": f"{log}/error.log",
            "UNITS": "application=loadlab-app.service nginx=nginx.service",
            "SESSION": "/",
            "DATABASE": "",
        },
        stderr=subprocess.PIPE,
        text=True,
    ) as recorder:
        written = folder / "out" / (f"cores{suffix}.txt" if suffix else "queues.jsonl")
        until = time.monotonic() + 60
        while not written.exists() or written.read_text().count("\n") < 2:
            assert time.monotonic() < until
            time.sleep(0.1)
        for name, line in (("loadlab", SAMPLED), ("error", FAILED)):
            with (log / f"{name}.log").open("a") as file:
                file.write(f"{line}\n")
        recorder.terminate()
        assert recorder.communicate(timeout=60)[1] == ""
    path = folder / "out" / "queues.jsonl.gz"
    assert path.exists() == (not suffix)
    return queues.read(path) if path.exists() else []


def test_recorder_reads_the_connections_that_wait_in_each_queue(tmp_path: Path) -> None:
    path = str(tmp_path / "app.sock")
    # Not every machine speaks IPv6.
    addresses = Path("/proc/net/if_inet6")
    ipv6 = addresses.exists() and f"{1:032x}" in addresses.read_text()
    family, address = (socket.AF_INET6, "::1") if ipv6 else (socket.AF_INET, "127.0.0.2")
    with (
        socket.socket(socket.AF_UNIX) as local,
        socket.socket() as tcp,
        socket.socket(family) as other,
    ):
        local.bind(path)
        tcp.bind(("127.0.0.1", 0))
        other.bind((address, 0))
        with waiting(local, 8, 5), waiting(tcp, 16, 17), waiting(other, 4, 0):
            readings = recorded(tmp_path)
        expected = {
            (path, 5, 8),
            (f"127.0.0.1:{tcp.getsockname()[1]}", 17, 16),
            (f"{'[::1]' if ipv6 else address}:{other.getsockname()[1]}", 0, 4),
        }
    assert len(readings) >= 2
    for reading in readings:
        assert abs(reading.t - time.time()) < 60
        assert {(one.socket, one.depth, one.limit) for one in reading.queues} >= expected
        assert {one.service for one in reading.queues} == {"nginx"}


def test_recorder_reads_the_connections_to_what_other_hosts_reach(tmp_path: Path) -> None:
    """An address that is not 127.x counts as one that other hosts reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as routed:
        routed.connect(("192.0.2.1", 9))
        address = routed.getsockname()[0]
    with socket.create_server((address, 0)) as listener, ExitStack() as stack:
        for _ in range(60):
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            stack.enter_context(listener.accept()[0]).sendall(b"x")
            client.recv(1)
        readings = recorded(tmp_path)
    found = present(queues.connections(readings, 0, time.time()))
    # The most that is read of one socket; only each tenth reading has any.
    assert found.samples == 50
    assert 0 < found.least_rtt_us <= found.rtt_us < 100_000
    assert found.window >= 2
    assert (found.unsent_bytes, found.retransmitted) == (0, 0)
    assert {one.unacked for reading in readings for one in reading.tcp} == {0}


def test_connections_are_those_of_the_load() -> None:
    def reading(t: float, *rtts: int) -> queues.Reading:
        each = [queues.Connection(rtt, 40, 10, 100, 2, 100, 0) for rtt in rtts]
        return queues.Reading(t, [], each)

    readings = [reading(0.5, 900), reading(1.5, 50, 60), reading(2.5), reading(3.5, 70)]
    found = present(queues.connections(readings, 1.0, 4.0))
    assert (found.samples, found.rtt_us, found.retransmitted) == (3, 60, 0.02)
    assert queues.connections(readings, 2.0, 3.0) is None


def test_window_is_that_of_connections_with_segments_on_the_way() -> None:
    def window(*connections: tuple[int, int]) -> float:
        each = [queues.Connection(50, 40, size, 0, 0, 100, on_way) for size, on_way in connections]
        return present(queues.connections([queues.Reading(1.0, [], each)], 1.0, 2.0)).window

    # The others paused, with a window that a slow start forgets.
    assert window((325, 0), (325, 0), (325, 0), (10, 10), (40, 40)) == 25
    assert window((325, 0), (10, 0)) == 167.5


def test_recorder_keeps_what_nginx_logged_during_the_load(tmp_path: Path) -> None:
    recorded(tmp_path)
    kept = gzip.decompress((tmp_path / "out" / "reverse_proxy.txt.gz").read_bytes()).decode()
    assert kept.splitlines() == [SAMPLED, f"error {time.strftime('%z')} {FAILED}"]


def test_recorder_of_a_client_records_no_queues(tmp_path: Path) -> None:
    assert recorded(tmp_path, "-client") == []
    assert not (tmp_path / "out" / "reverse_proxy.txt.gz").exists()
    assert (tmp_path / "out" / "cores-client.txt.gz").exists()
