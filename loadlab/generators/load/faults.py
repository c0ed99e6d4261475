"""The shell commands that inject a load's known faults into the hosts."""

import shlex
from urllib.parse import urlsplit

from msgspec import Struct

from loadlab.generators.load.host_commands import stopped
from loadlab.model import Download, HalfOpen, Load, Neighbour, Stall
from loadlab.run.formatting import plain

# Neighbours: wait, then use CPU in one piece in each tenth of a second. The kernel may share its
# cores between sessions, so each has its own.
# The arguments: seconds to wait, seconds to run, fraction of a core, number.
NEIGHBOUR = """
import os, sys, time
after, duration, cpu = map(float, sys.argv[1:4])
for other in range(1, int(sys.argv[4])):
    if os.fork() == 0:
        os.setsid()
        break
time.sleep(after)
begin = time.monotonic()
for period in range(round(duration * 10)):
    time.sleep(max(0, begin + period / 10 - time.monotonic()))
    used = time.thread_time() + cpu / 10
    while time.thread_time() < used and time.monotonic() < begin + duration:
        pass
"""

# Half-open connections: each socket has a filter that takes no packet, so the SYN-ACK never reaches
# it. The kernel sends the SYN again by itself until the socket is closed; afterwards it resets.
# Its arguments: seconds to wait, seconds to hold, connections, address, port.
HALF_OPEN = """
import ctypes, socket, struct, sys, time
after, duration = map(float, sys.argv[1:3])
begun, address, port = int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
ATTACH_FILTER = 26
nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
taken = struct.pack("HP", 1, ctypes.addressof(nothing))
time.sleep(after)
held = []
for number in range(begun):
    held.append(socket.socket())
    held[-1].setblocking(False)
    held[-1].setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, taken)
    held[-1].connect_ex((address, port))
time.sleep(duration)
"""


class Fault(Struct):
    """One fault: shell commands for a host, and the packages that they need."""

    host: str
    begin: str  #: Runs when the load was started, and returns at once.
    end: str = ""  #: Runs when the load is over; empty where nothing is left of the fault.
    packages: list[str] = []


def faults(
    load: Load,
    url: str,
    server: str,
    client: str,
    core: dict[str, int],
    lead_s: float,
    most_s: float,
) -> list[Fault]:
    """Return the faults of a load.

    ``url``: that the clients ask. ``server``, ``client``: inventory names. ``core``: each one's
    first core. ``lead_s``: seconds from the start of the load to the start of the measurement.
    ``most_s``: seconds after which a fault ends where nobody ends it.
    """
    load_faults = []
    if load.stall:
        load_faults.append(Fault(server, _stop("loadlab-app", load.stall, lead_s)))
    injection = load.injection
    if injection is None:
        return load_faults
    if injection.generator_stop:
        load_faults.append(Fault(client, _stop("loadlab-load", injection.generator_stop, lead_s)))
    if injection.neighbour:
        host = client if injection.neighbour.host == "client" else server
        load_faults.append(_neighbour(host, core[host], injection.neighbour, lead_s))
    target = urlsplit(url)
    address, port = target.hostname or "", target.port or (443 if target.scheme == "https" else 80)
    if injection.half_open:
        load_faults.append(_half_open(client, injection.half_open, address, port, lead_s))
    if injection.refused_every:
        load_faults.append(
            _network(
                server,
                f"tcp dport {port} tcp flags & (syn | ack) == syn",
                injection.refused_every,
                "reject with tcp reset",
                most_s,
            )
        )
    if injection.lost_every:
        load_faults.append(
            _network(server, f"tcp dport {port}", injection.lost_every, "drop", most_s)
        )
    if injection.download:
        load_faults += _download(server, client, address, injection.download, lead_s, most_s)
    return load_faults


def _stop(unit: str, stall: Stall, lead_s: float) -> str:
    """Return the command that stops a service for a while. It is detached, so that the service
    always continues, whatever happens to the load."""
    return (
        f"systemd-run --quiet --collect --unit={unit}-stall sh -c "
        f"'sleep {plain(lead_s + stall.after_s)}; systemctl kill --signal=STOP {unit}; "
        f"sleep {plain(stall.duration_s)}; systemctl kill --signal=CONT {unit}'"
    )


def _neighbour(host: str, core: int, neighbour: Neighbour, lead_s: float) -> Fault:
    arguments = [lead_s + neighbour.after_s, neighbour.duration_s, neighbour.cpu]
    program = shlex.join(
        ["python3", "-c", NEIGHBOUR, *map(plain, arguments), str(neighbour.programs)]
    )
    if neighbour.host == "controller":
        return Fault("localhost", f"setsid --fork {program} </dev/null >/dev/null 2>&1")
    # Not loadlab-*: the recorder takes these services for the lab's own.
    return _service(host, "neighbour-of-loadlab", f"--property=CPUAffinity={core} {program}")


def _half_open(client: str, half_open: HalfOpen, address: str, port: int, lead_s: float) -> Fault:
    held = [lead_s + half_open.after_s, half_open.duration_s, half_open.connections]
    program = shlex.join(["python3", "-c", HALF_OPEN, *map(plain, held), address, str(port)])
    return _service(client, "loadlab-half-open", f"--property=LimitNOFILE=4096 {program}")


def _service(host: str, unit: str, command: str) -> Fault:
    """Return a service as a fault; ``command``: properties of its unit, and the program."""
    return Fault(host, f"systemd-run --quiet --collect --unit={unit} {command}", stopped(unit))


def _network(host: str, packets: str, every: int, then: str, most_s: float) -> Fault:
    """Return the fault that does something to every n-th packet that arrives.

    The first packet of the load script's own request is not the n-th. A timer of the host ends it
    where the controller does not.
    """
    verb = then.partition(" ")[0]
    unit, table = f"loadlab-fault-{verb}", f"inet loadlab_fault_{verb}"
    gone = f"! nft list table {table} >/dev/null 2>&1 || nft delete table {table}"
    end = f"systemctl --quiet stop {unit}.timer 2>/dev/null; {gone}"
    rules = (
        f"add table {table}; "
        f"add chain {table} input {{ type filter hook input priority 0; }}; "
        f"add rule {table} input {packets} numgen inc mod {every} == {every - 1} "
        f"counter {then}"
    )
    return Fault(
        host,
        f"{{ {end}; }} && systemd-run --quiet --collect --unit={unit} --on-active={plain(most_s)} "
        f"sh -c {shlex.quote(gone)} && nft '{rules}'",
        end,
        ["nftables"],
    )


def _download(
    server: str, client: str, address: str, download: Download, lead_s: float, most_s: float
) -> list[Fault]:
    """Return iperf3's two sides. Both are the lab's own services."""
    unit = "loadlab-download"
    properties = f"--property=DynamicUser=true --property=RuntimeMaxSec={plain(most_s)}"
    offers = (
        f"{properties} iperf3 --server --bind {address} && for try in $(seq 50); do "
        f"ss -ltnH src {address}:5201 | grep -q . && exit 0; sleep 0.1; done; exit 1"
    )
    fetches = (
        f"{properties} sh -c 'sleep {plain(lead_s + download.after_s)}; "
        f"exec iperf3 --client {address} --reverse --time {plain(download.duration_s)}'"
    )
    return [_service(server, unit, offers), _service(client, unit, fetches)]
