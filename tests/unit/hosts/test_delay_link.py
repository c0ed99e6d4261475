"""The relay that delays a link where there is no netem, between two network namespaces."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlab.hosts.qdisc import RELAY_INTERFACE

ROLE = Path(__file__).parents[3] / "roles/network_emulation"
RELAY = ROLE / "files/delay-link.py"
UNIT = ROLE / "templates/loadlab-delay.service.j2"
# Not names of the lab's hosts: the tests that look for their traces run at the same time.
NEAR, FAR = f"test-near-{os.getpid()}", f"test-far-{os.getpid()}"
OWN_ROUTE = "192.0.2.2 dev test0 src 192.0.2.1"
ADDRESSES = {NEAR: "192.0.2.1", FAR: "192.0.2.2"}
# Answers each datagram with itself.
ECHO = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
    echo.bind(("192.0.2.2", 7))
    print("ready", flush=True)
    while True:
        echo.sendto(*echo.recvfrom(2000))
"""
# Prints how long an answer of 1,400 bytes takes, ms, ten times.
ASK = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
    asks.settimeout(5)
    asks.connect(("192.0.2.2", 7))
    for number in range(10):
        begin = time.monotonic()
        asks.send(bytes([number]) * 1400)
        assert asks.recv(2000) == bytes([number]) * 1400
        print(1000 * (time.monotonic() - begin))
"""


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


@pytest.fixture
def link() -> Iterator[None]:
    """Two network namespaces of the test's own, joined by a veth pair."""
    for name in (NEAR, FAR):
        subprocess.run(["ip", "netns", "add", name], check=True)
    commands = [f"ip -n {NEAR} link add test0 type veth peer name test0 netns {FAR}"]
    for name, address in ADDRESSES.items():
        commands += [f"ip -n {name} address add {address}/24 dev test0"]
        commands += [f"ip -n {name} link set test0 up"]
    for command in commands:
        subprocess.run(command.split(), check=True)
    yield
    for name in (NEAR, FAR):
        subprocess.run(["ip", "netns", "delete", name], check=True)


def until_there(namespace: str, device: str) -> None:
    for _ in range(100):
        found = subprocess.run(
            ["ip", "-n", namespace, "link", "show", device], check=False, capture_output=True
        )
        if found.returncode == 0:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {device} in {namespace}")


def after_start() -> list[str]:
    """Return the words of ip that the unit runs when the relay is ready."""
    text = UNIT.read_text()
    for name, value in {
        "__network_emulation_device": RELAY_INTERFACE,
        "peer": "192.0.2.2",
        "test_address": "192.0.2.1",
    }.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    return re.findall("^ExecStartPost=ip (.*)$", text, re.MULTILINE)


def test_each_packet_waits_for_the_delay_and_arrives_whole(link: None) -> None:
    relay = [sys.executable, str(RELAY), RELAY_INTERFACE, "test0", "30"]
    started = [
        subprocess.Popen(inside(NEAR, *relay)),
        subprocess.Popen(inside(FAR, sys.executable, "-c", ECHO), stdout=subprocess.PIPE),
    ]
    try:
        until_there(NEAR, RELAY_INTERFACE)
        # As of a host that has a route to the other one alone.
        for command in (f"route add {OWN_ROUTE}", *after_start()):
            subprocess.run(["ip", "-n", NEAR, *command.split()], check=True)
        assert started[1].stdout
        assert started[1].stdout.readline() == b"ready\n"
        asked = inside(NEAR, sys.executable, "-c", ASK)
        took = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        waits = sorted(float(line) for line in took.splitlines())
        assert len(waits) == 10
        # Only the way there is delayed. A late timer makes a wait longer, never shorter.
        assert waits[0] >= 30
        assert waits[5] < 60
    finally:
        for one in started:
            one.kill()
            one.wait()
    routes = subprocess.run(
        ["ip", "-n", NEAR, "route"], check=True, capture_output=True, text=True
    ).stdout
    assert OWN_ROUTE in routes.replace("scope link ", "")
