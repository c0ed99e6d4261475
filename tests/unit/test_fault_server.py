"""The fault server does what a request's header asks for, and logs what it did."""

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BODY = b"Hello, World!"


class Running(NamedTuple):
    """A fault server: its port, the file of its log, and its process."""

    port: int
    log: Path
    process: subprocess.Popen[bytes]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Return a running fault server."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    log = tmp_path / "log"
    with log.open("wb") as output:
        # uvloop is the application's own dependency; asyncio's loop has the same interface.
        process = subprocess.Popen(
            [sys.executable, "-c", "import asyncio, app; asyncio.run(app.main())"],
            stdout=output,
            cwd=ROOT / "apps/fault_server",
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "files/python"), str(tmp_path)]),
                "LAB_LISTEN": f"127.0.0.1:{port}",
                "LAB_BACKLOG": "64",
            },
        )
    (tmp_path / "uvloop.py").touch()
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    yield Running(port, log, process)
    process.terminate()
    process.wait()


def ask(port: int, header: str | None) -> tuple[int, bytes]:
    """Return status and body of an answer. Raises HTTPException where it is truncated."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/hello", headers={} if header is None else {"Inject": header})
    answer = connection.getresponse()
    return answer.status, answer.read()


def logged(log: Path) -> list[dict[str, object]]:
    """Return the lines of the log, once the last load has ended."""
    for _ in range(100):
        if lines := log.read_text().splitlines():
            return [json.loads(line)["injected"] for line in lines]
        time.sleep(0.05)
    raise AssertionError("the load never ended")


def test_a_request_without_the_header_gets_the_contracts_answer(running: Running) -> None:
    assert ask(running.port, None) == (200, BODY)


def test_every_nth_answer_is_the_fault_asked_for_and_is_counted(running: Running) -> None:
    header = "name=mixed; delay_ms=20; error_every=5; truncate_every=3"
    found = []
    began = time.monotonic()
    for _ in range(10):
        try:
            found.append(ask(running.port, header)[0])
        except http.client.HTTPException:
            found.append(0)
    assert time.monotonic() - began >= 0.2
    assert found == [200, 200, 0, 200, 503, 0, 200, 200, 0, 503]
    (line,) = logged(running.log)
    assert line["answers"] == {"right": 5, "truncated": 3, "error": 2}
    residence = line["residence_us"]
    assert isinstance(residence, list)
    assert min(us for us, _ in residence) >= 20_000


def test_a_load_under_way_is_logged_when_the_server_is_stopped(running: Running) -> None:
    ask(running.port, "name=stopped; delay_ms=1")
    running.process.terminate()
    running.process.wait(timeout=5)
    (line,) = logged(running.log)
    assert line["requests"] == 1


def test_a_stall_holds_answers_until_its_end_and_cpu_time_is_burnt(running: Running) -> None:
    header = "name=stalled; cpu_ms=5; stall_at_s=0; stall_s=0.5"
    began = time.monotonic()
    ask(running.port, header)
    assert time.monotonic() - began >= 0.5
    for _ in range(9):
        ask(running.port, header)
    (line,) = logged(running.log)
    assert line["requests"] == 10
    assert isinstance(line["cpu_s"], float)
    assert line["cpu_s"] >= 0.05


def test_a_split_answer_arrives_whole_and_its_body_may_be_held_back(running: Running) -> None:
    seconds = {}
    # As asyncio sets a socket up that names its protocol, and as the header asks.
    for asked in ("name=own", "name=sent; nagle=0", "name=held; nagle=1"):
        header = f"{asked}; split=1"
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        for number in range(20):
            if number == 5:  # Linux acknowledges the first packets of a connection at once.
                began = time.monotonic()
            connection.request("GET", "/hello", headers={"Inject": header})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, BODY)
        seconds[header] = time.monotonic() - began
        connection.close()
    own, sent, held = seconds.values()
    assert held >= 15 * 0.035
    assert max(own, sent) < held / 2


def test_a_single_queue_slows_to_half_of_its_capacity(running: Running) -> None:
    header = "name=queue; service_ms=20; slow_at_s=0.5"
    before = time.monotonic()
    ask(running.port, header)
    fast = time.monotonic() - before
    time.sleep(0.6)
    before = time.monotonic()
    ask(running.port, header)
    assert fast >= 0.02
    assert time.monotonic() - before >= 0.04


def test_random_service_times_are_exponential(running: Running) -> None:
    """Beside fixed ones, in turns: what disturbs the machine adds to both."""
    for _ in range(100):
        assert ask(running.port, "name=random; service_mean_ms=10") == (200, BODY)
        assert ask(running.port, "name=fixed; service_ms=10") == (200, BODY)
    times_us: dict[object, list[int]] = {"random": [], "fixed": []}
    for line in logged(running.log):
        assert isinstance(line["residence_us"], list)
        for us, count in line["residence_us"]:
            times_us[line["name"]] += [us] * count
    drawn, fixed = times_us["random"], times_us["fixed"]
    assert min(len(drawn), len(fixed)) >= 99
    # 100 times know the mean to 10 %. A fifth of them are below 2.2 ms; the deviation is 10 ms.
    assert 0.7 < statistics.fmean(drawn) / statistics.fmean(fixed) < 1.4
    assert sorted(drawn)[20] < min(fixed)
    assert statistics.stdev(drawn) > 6_000


def test_cpu_time_that_is_burned_in_the_kernel_is_logged(running: Running) -> None:
    for _ in range(100):
        assert ask(running.port, "name=kernel; kernel_ms=5") == (200, BODY)
    (load,) = logged(running.log)
    burned_s, used_s = float(str(load["kernel_s"])), float(str(load["cpu_s"]))
    assert 0.5 <= burned_s < 0.55
    assert burned_s < used_s
