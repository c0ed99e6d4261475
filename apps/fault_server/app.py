"""A server with known faults. Contract: files/endpoints.yml.

The header Inject of a request names the load and asks for faults, separated by semicolons:

- name=<name>: the name of the load, required
- delay_ms: how long each answer takes
- stall_at_s, stall_s: no answer for stall_s seconds, from stall_at_s after the first request on
- service_ms: a single queue, in which each request is served for this long
- service_mean_ms: the same for random times, with an exponential distribution and this mean
- slow_at_s: from then on each is served for twice as long
- cpu_ms: CPU time that each answer burns
- kernel_ms: CPU time that each answer burns inside the kernel, beside cpu_ms
- error_every: every n-th answer is a 503
- truncate_every: every n-th answer ends after half of its body, and its connection closes
- split: 1 writes the head and the body of each answer apart
- nagle: 1 lets the kernel hold a small packet back while another is unacknowledged, 0 does not

A request without the header gets the endpoint's answer at once.

When a load has ended, the server prints one line of JSON, `{"injected": …}`: what it did to each
request of the load, by its own clock. Times are µs from when its kernel had the request to the
answer's write. So they include what a request waits for this program.
"""

from __future__ import annotations

import asyncio
import collections
import json
import os
import random
import resource
import signal
import socket
import struct
import time
from collections.abc import Mapping

import uvloop
import work

# Seconds without a request after which a load has ended.
IDLE_S = 1.0
# Seconds before an answer is due from which on the loop polls: its timers have whole milliseconds.
POLL_S = 0.002
# Asks for the time at which the kernel had what a read returns; Python names it from 3.14 on.
SO_TIMESTAMPNS = 35


def cpu_s() -> float:
    """Return the CPU time of this process, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Load:
    """One load: what it asks for, and what was done to its requests."""

    def __init__(self, header: str, now: float) -> None:
        words = dict(word.strip().split("=", 1) for word in header.split(";"))
        self.header = header
        self.name = words.pop("name")
        self.asked = {key: float(value) for key, value in words.items()}
        self.first = self.last = now
        self.cpu_before = cpu_s()
        self.kernel_s = 0.0
        self.requests = 0
        self.open = 0
        self.free_at = 0.0
        self.answers: collections.Counter[str] = collections.Counter()
        self.residence_us: collections.Counter[int] = collections.Counter()

    def answer_at(self, now: float) -> float:
        """Return when the answer to a request that is complete now is due."""
        asked = self.asked
        at = now + asked.get("delay_ms", 0) / 1000
        if "service_ms" in asked:
            slow = now - self.first >= asked.get("slow_at_s", float("inf"))
            self.free_at = max(self.free_at, now) + asked["service_ms"] / 1000 * (2 if slow else 1)
            at = self.free_at
        if mean_ms := asked.get("service_mean_ms"):
            self.free_at = max(self.free_at, now) + random.expovariate(1000 / mean_ms)
            at = self.free_at
        begin = self.first + asked.get("stall_at_s", float("inf"))
        if begin <= at < begin + asked.get("stall_s", 0):
            at = begin + asked["stall_s"]
        return at

    def kind(self) -> str:
        """Return what the next answer is: error, truncated or right. Counts the request."""
        self.requests += 1
        if (every := self.asked.get("error_every")) and self.requests % every == 0:
            return "error"
        if (every := self.asked.get("truncate_every")) and self.requests % every == 0:
            return "truncated"
        return "right"

    def burn(self) -> None:
        """Use the CPU time that an answer burns."""
        end = time.thread_time() + self.asked.get("cpu_ms", 0) / 1000
        while time.thread_time() < end:
            pass
        begin = time.thread_time()
        end = begin + self.asked.get("kernel_ms", 0) / 1000
        while time.thread_time() < end:
            os.getrandom(1 << 16)
        self.kernel_s += time.thread_time() - begin

    def document(self) -> dict[str, object]:
        """Return what was done, as the log has it."""
        return {
            "name": self.name,
            "requests": self.requests,
            "answers": dict(self.answers),
            "cpu_s": cpu_s() - self.cpu_before,
            "kernel_s": self.kernel_s,
            "residence_us": sorted(self.residence_us.items()),
        }


class FaultServer:
    """One connection."""

    load: Load | None = None

    def __init__(self, connection: socket.socket) -> None:
        self.buffer = b""
        self.connection = connection
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, True)
        asyncio.get_running_loop().add_reader(connection, self.read)

    def read(self) -> None:
        """Answer each complete request."""
        try:
            data, stamps, _, _ = self.connection.recvmsg(65536, socket.CMSG_SPACE(16))
        except BlockingIOError:
            return
        except OSError:
            data, stamps = b"", []
        if not data:
            self.close()
            return
        # The kernel stamps by the wall clock; everything else here uses the monotonic clock.
        since = time.monotonic()
        for level, kind, stamp in stamps:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("qq", stamp)
                since -= max(0, time.time_ns() - seconds * 10**9 - nanoseconds) / 1e9
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head, self.buffer = self.buffer[:end].decode("latin-1"), self.buffer[end + 4 :]
            self.requested(head, since)

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self.connection.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self.connection)
            self.connection.close()

    def requested(self, head: str, now: float) -> None:
        """Answer one request, which was complete at ``now``, at its time."""
        line, *lines = head.split("\r\n")
        headers = {
            key.lower(): value.strip() for key, _, value in (one.partition(":") for one in lines)
        }
        close = headers.get("connection", "").lower() == "close"
        header = headers.get("inject")
        # The load script asks once before the load.
        if header is None or headers.get("user-agent", "").startswith("curl/"):
            self.write(line.split()[1], "right", close, {})
            return
        load = FaultServer.current(header, now)
        load.last = now
        load.open += 1
        at = load.answer_at(now)
        path = line.split()[1]
        left = at - time.monotonic()
        if left > POLL_S:
            asyncio.get_running_loop().call_later(
                left - POLL_S, self.answer_when_due, at, load, path, now, close
            )
        else:
            self.answer_when_due(at, load, path, now, close)

    def answer_when_due(self, at: float, load: Load, path: str, since: float, close: bool) -> None:
        """Answer a request once it is time; until then, let the loop do what else there is."""
        if at <= time.monotonic():
            self.answer(load, path, since, close)
        else:
            asyncio.get_running_loop().call_soon(self.answer_when_due, at, load, path, since, close)

    def answer(self, load: Load, path: str, since: float, close: bool) -> None:
        """Answer a request of a load that was complete at ``since``."""
        load.burn()
        kind = load.kind()
        load.open -= 1
        if self.connection.fileno() < 0:
            kind = "abandoned"
        else:
            self.write(path, kind, close, load.asked)
        load.last = time.monotonic()
        load.answers[kind] += 1
        load.residence_us[round((load.last - since) * 1e6)] += 1

    def write(self, path: str, kind: str, close: bool, asked: Mapping[str, float]) -> None:
        """Write one answer."""
        body = work.HELLO.encode() if path == "/hello" else b"Not Found"
        status = "200 OK" if path == "/hello" else "404 Not Found"
        if kind == "error":
            status, body = "503 Service Unavailable", b"Unavailable"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {work.TEXT}\r\nContent-Length: {len(body)}\r\n"
            f"{'Connection: close' if close else 'Connection: keep-alive'}\r\n\r\n"
        ).encode()
        sent = body[: len(body) // 2] if kind == "truncated" else body
        last = close or kind == "truncated"
        if "nagle" in asked:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not asked["nagle"])
        if asked.get("split"):
            self.send(head, False)
            asyncio.get_running_loop().call_soon(self.send, sent, last)
        else:
            self.send(head + sent, last)

    def send(self, data: bytes, last: bool) -> None:
        """Write a part of an answer, and close after the last part where nothing follows."""
        if self.connection.fileno() < 0:
            return
        try:
            # An answer is smaller than a socket's buffer.
            self.connection.send(data)
        except OSError:
            last = True
        if last:
            self.close()

    @classmethod
    def current(cls, header: str, now: float) -> Load:
        """Return the load that a header belongs to; a new header ends the load before."""
        if cls.load is None or cls.load.header != header:
            cls.end()
            cls.load = Load(header, now)
        return cls.load

    @classmethod
    def end(cls) -> None:
        """Print what was done to the requests of the load, which has ended."""
        if cls.load is not None:
            print(json.dumps({"injected": cls.load.document()}), flush=True)
            cls.load = None

    @classmethod
    async def watch(cls) -> None:
        """End each load that sends no more requests."""
        while True:
            await asyncio.sleep(IDLE_S / 4)
            load = cls.load
            if load and not load.open and time.monotonic() - load.last > IDLE_S:
                cls.end()


def accept(listening: socket.socket) -> None:
    """Take the connections that wait."""
    while True:
        try:
            FaultServer(listening.accept()[0])
        except BlockingIOError:
            return


async def main() -> None:
    """Serve until the service is stopped, which also ends a load."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    listening = work.listen()
    loop.add_reader(listening, accept, listening)
    watching = asyncio.create_task(FaultServer.watch())
    work.ready()
    await stopped.wait()
    watching.cancel()
    FaultServer.end()


if __name__ == "__main__":
    uvloop.run(main())
