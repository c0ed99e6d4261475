"""Delay every IPv4 packet to the hosts that this one measures with, as netem's delay does.

delay-link.py TUN INTERFACE MILLISECONDS

The kernel routes the packets into the tun device TUN. After the delay, a raw socket sends each on
through INTERFACE, in the order in which they came.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import time

# From linux/if_tun.h.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
# From asm-generic/socket.h: beyond net.core.wmem_max.
SO_SNDBUFFORCE = 32
# All that a deep queue of the interface may hold, or the packets would wait here.
SEND_BUFFER_BYTES = 64 * 1024 * 1024
LARGEST_PACKET = 65_535


def open_tun(name: str) -> int:
    """Return the file of a new tun device, whose reads do not wait."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def open_interface(name: str) -> socket.socket:
    """Return a raw socket that sends whole IPv4 packets through one interface."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
    raw.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
    return raw


def relay(tun: int, out: socket.socket, delay_s: float) -> None:
    """Send on each packet of the tun device when it has waited, for ever."""
    waiting: collections.deque[tuple[float, bytes]] = collections.deque()
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([tun], [], [], left)[0]:
            leaves = time.monotonic() + delay_s
            with contextlib.suppress(BlockingIOError):
                while True:
                    waiting.append((leaves, os.read(tun, LARGEST_PACKET)))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            packet = waiting.popleft()[1]
            # The kernel announces itself over IPv6 on every new device.
            if packet[0] >> 4 == 4:
                out.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))


def ready() -> None:
    """Tell systemd that the tun device is there."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect("\0" + where[1:] if where.startswith("@") else where)
            notify.send(b"READY=1")


def main() -> None:
    """Relay until the service is stopped; the device and its routes go with it."""
    name, interface, milliseconds = sys.argv[1:]
    tun, out = open_tun(name), open_interface(interface)
    ready()
    relay(tun, out, float(milliseconds) / 1000)


if __name__ == "__main__":
    main()
