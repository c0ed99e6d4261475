"""The commands that inject a load's faults."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from loadlab.generators.load.faults import HALF_OPEN, NEIGHBOUR, Fault, faults
from loadlab.model import Download, HalfOpen, Injection, Neighbour, Stall
from tests.unit import builders
from tests.unit.builders import load


def of(**changes: object) -> list[Fault]:
    return faults(
        load(**changes),
        "http://10.0.0.2:8080/hello",
        "server",
        "client",
        {"server": 2, "client": 3},
        1.5,
        90,
    )


def test_faults_of_a_load_over_tls_are_at_its_port() -> None:
    faulty = load(injection=Injection(refused_every=100))
    (fault,) = faults(faulty, "https://10.0.0.2/", "server", "client", {}, 1.5, 90)
    assert "input tcp dport 443 " in fault.begin


def test_a_load_without_faults_needs_no_command() -> None:
    assert of() == []


def test_each_stall_stops_its_own_service() -> None:
    stall = Stall(after_s=2, duration_s=0.5)
    server, client = of(stall=stall, injection=Injection(generator_stop=stall))
    assert (server.host, client.host) == ("server", "client")
    assert "sleep 3.5; systemctl kill --signal=STOP loadlab-app; sleep 0.5;" in server.begin
    assert "systemctl kill --signal=CONT loadlab-load" in client.begin


def test_a_neighbour_runs_where_the_cell_wants_it() -> None:
    found = [
        of(injection=Injection(neighbour=Neighbour(host=host, after_s=1, duration_s=4)))[0]
        for host in ("server", "client", "controller")
    ]
    assert [one.host for one in found] == ["server", "client", "localhost"]
    assert ["CPUAffinity=2" in found[0].begin, "CPUAffinity=3" in found[1].begin] == [True, True]
    assert all(" 2.5 4 1" in one.begin for one in found)
    stop = "systemctl stop neighbour-of-loadlab"
    assert [stop in one.end for one in found] == [True, True, False]


def test_a_client_downloads_from_the_address_that_the_load_asks() -> None:
    offers, fetches = of(injection=Injection(download=Download(after_s=1, duration_s=4)))
    assert (offers.host, fetches.host) == ("server", "client")
    assert "iperf3 --server --bind 10.0.0.2 " in offers.begin
    assert "sleep 2.5; exec iperf3 --client 10.0.0.2 --reverse --time 4" in fetches.begin
    assert all("systemctl stop loadlab-download" in one.end for one in (offers, fetches))


def test_several_neighbours_are_sessions_of_their_own() -> None:
    several = Neighbour(host="server", after_s=0, duration_s=1, cpu=0.01, programs=3)
    (fault,) = of(injection=Injection(neighbour=several))
    assert fault.begin.endswith(" 1.5 1 0.01 3")
    first = subprocess.Popen([sys.executable, "-I", "-S", "-c", NEIGHBOUR, "0.5", "1", "0.01", "3"])
    time.sleep(0.3)
    told = subprocess.check_output(["ps", "-o", "pid=,sid=", "--ppid", str(first.pid)], text=True)
    others = [line.split() for line in told.splitlines()]
    assert len(others) == 2
    assert all(pid == session for pid, session in others)
    assert first.wait(timeout=30) == 0


@pytest.mark.parametrize("cpu", [0.05, 0.5])
def test_a_neighbour_uses_its_part_of_a_core(cpu: float) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ["0.1", "2", str(cpu), "1"]
    # Before all other work of this machine.
    first = ["nice", "-n", "-20"]
    subprocess.run([*first, sys.executable, "-I", "-S", "-c", NEIGHBOUR, *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The interpreter's own start takes some hundredths of a second.
    assert 2 * cpu * 0.3 <= used <= 2 * cpu * 1.1 + 0.1


def test_half_open_connections_are_begun_by_the_client_at_their_time() -> None:
    (fault,) = of(injection=Injection(half_open=HalfOpen(connections=9, after_s=1, duration_s=4)))
    assert fault.host == "client"
    assert fault.begin.endswith(" 2.5 4 9 10.0.0.2 8080")
    assert "systemctl stop loadlab-half-open" in fault.end


def test_half_open_connections_stay_half_open_until_their_end(namespace: list[str]) -> None:
    """Each is in SYN-RECV at a listener that would accept it, and is gone at the listener's next
    SYN-ACK after the end."""
    listener = (
        "import socket, sys; one = socket.create_server(('127.0.0.1', 8080), backlog=64); "
        "print(flush=True); sys.stdin.read()"
    )
    python = [sys.executable, "-I", "-S", "-c"]
    subprocess.run([*namespace, "ip", "link", "set", "lo", "up"], check=True)
    with subprocess.Popen(
        [*namespace, *python, listener], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as listening:
        builders.present(listening.stdout).readline()
        arguments = ["0", "2", "20", "127.0.0.1", "8080"]
        begun = subprocess.Popen([*namespace, *python, HALF_OPEN, *arguments])
        until(lambda: connections(namespace) == {"syn-recv": 20, "established": 0})
        assert begun.wait() == 0
        until(lambda: connections(namespace) == {"syn-recv": 0, "established": 0})
        listening.communicate()


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds. Raises AssertionError after 20 seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def connections(namespace: list[str]) -> dict[str, int]:
    """Return how many connections of the port are in each of two states."""
    found = {}
    for state in ("syn-recv", "established"):
        shown = subprocess.run(
            [*namespace, "ss", "-Htan", "state", state, "sport", "=", ":8080"],
            check=True,
            capture_output=True,
        ).stdout
        found[state] = len(shown.splitlines())
    return found


@pytest.fixture
def namespace() -> Iterator[list[str]]:
    """Return the command prefix of a network namespace of the test's own."""
    # Not a name of the lab's hosts: the tests that look for their traces run at the same time.
    name = f"test-faults-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.parametrize(
    ("injection", "verdict"),
    [(Injection(refused_every=100), "reject"), (Injection(lost_every=50), "drop")],
)
def test_the_kernel_takes_the_rules_and_gives_them_up(
    namespace: list[str], injection: Injection, verdict: str
) -> None:
    (fault,) = of(injection=injection)
    # The host itself ends what a controller leaves, which may be tried again meanwhile.
    command = f'systemctl() {{ :; }}; systemd-run() {{ echo "$@"; }}; {fault.begin}'
    for _ in range(2):
        timer = subprocess.check_output([*namespace, "bash", "-c", command], text=True)
        assert re.search("--on-active=90 sh -c .* nft delete table", timer)
    shown = subprocess.run(
        [*namespace, "nft", "-j", "list", "ruleset"], check=True, capture_output=True
    ).stdout
    (rule,) = [one["rule"] for one in json.loads(shown)["nftables"] if "rule" in one]
    assert [verdict in part for part in rule["expr"]].count(True) == 1
    for _ in range(2):
        subprocess.run([*namespace, "sh", "-c", fault.end], check=True)
    gone = subprocess.run([*namespace, "nft", "list", "tables"], check=True, capture_output=True)
    assert gone.stdout == b""
