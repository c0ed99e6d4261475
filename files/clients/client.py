"""Fetch one URL many times as three Python clients do, and record what becomes of each request.

    sync      the requests library, one request after another
    async     aiohttp, a task for each request, all of them at once
    bounded   aiohttp, a task for each request, a semaphore letting so many through at a time

Each client is a function below, written as its users write it. The client is what is measured:
how long it takes, its CPU time and memory, and what breaks when it runs out of open files or of
local ports. A request that fails is recorded by its cause and stops no other.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gzip
import importlib
import json
import os
import platform
import resource
import threading
import time
from array import array
from pathlib import Path
from typing import Any, TextIO

FORMAT = "lab python client/1"
# Imported by name, only what is used: it counts in the peak memory.
LIBRARY = {"sync": "requests", "async": "aiohttp", "bounded": "aiohttp"}
OWN_HEADERS = {
    # The length of the body as it was verified.
    "Accept-Encoding": "identity",
    # Said even where connections are not reused: then the client closes them, as requests.get
    # does, and the closed ones keep their ports (TIME-WAIT) at the client.
    "Connection": "keep-alive",
}
LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Record:
    """Start and duration in seconds and outcome of each request; 18 bytes a request."""

    def __init__(self, requests: int) -> None:
        self.requests = requests
        self.done = 0
        self.begun = time.monotonic()
        self.start = array("d", bytes(8 * requests))
        self.duration = array("d", bytes(8 * requests))
        self.outcome = array("H", bytes(2 * requests))
        self.outcomes = {"ok": 0}

    def add(self, number: int, begun: float, outcome: str) -> None:
        """Record that a request, begun at that monotonic time, is over now."""
        self.start[number] = begun - self.begun
        self.duration[number] = time.monotonic() - begun
        self.outcome[number] = self.outcomes.setdefault(outcome, len(self.outcomes))
        self.done += 1


def check(load: argparse.Namespace, status: int, length: int) -> str:
    """The outcome of an answer: ok, its status, or body where the length is not the expected."""
    if not 200 <= status < 300:
        return f"HTTP {status}"
    return "ok" if length == load.body_bytes else "body"


def cause(error: BaseException) -> str:
    """The outcome of a failure: the kernel's errno by name, timeout, or the exception's name.

    Both libraries wrap what the kernel said several times over, as cause, context or argument.
    """
    chain = [error]
    for found in chain:  # which grows meanwhile
        if isinstance(found, OSError) and found.errno in errno.errorcode:
            return errno.errorcode[found.errno]
        for inner in (found.__cause__, found.__context__, *found.args):
            if isinstance(inner, BaseException) and inner not in chain:
                chain.append(inner)
    if any(isinstance(found, TimeoutError) for found in chain):
        return "timeout"
    return type(error).__name__


def sync(load: argparse.Namespace, record: Record) -> None:
    import requests

    with requests.Session() as session:
        get = session.get if load.reuse else requests.get
        for number in range(load.requests):
            begun = time.monotonic()
            try:
                response = get(load.url, headers=load.headers, timeout=load.timeout)
                outcome = check(load, response.status_code, len(response.content))
            except Exception as error:
                outcome = cause(error)
            record.add(number, begun, outcome)


def client_session(load: argparse.Namespace) -> Any:
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=not load.reuse),
        timeout=aiohttp.ClientTimeout(total=load.timeout),
        headers=load.headers,
    )


async def fetch(session: Any, load: argparse.Namespace, record: Record, number: int) -> None:
    begun = time.monotonic()
    try:
        async with session.get(load.url) as response:
            outcome = check(load, response.status, len(await response.read()))
    except Exception as error:
        outcome = cause(error)
    record.add(number, begun, outcome)


async def unbounded(load: argparse.Namespace, record: Record) -> None:
    async with client_session(load) as session:
        tasks = [
            asyncio.create_task(fetch(session, load, record, number))
            for number in range(load.requests)
        ]
        await asyncio.gather(*tasks)


async def bounded(load: argparse.Namespace, record: Record) -> None:
    semaphore = asyncio.Semaphore(load.connections)

    async def bound_fetch(session: Any, number: int) -> None:
        async with semaphore:
            await fetch(session, load, record, number)

    async with client_session(load) as session:
        tasks = [
            asyncio.create_task(bound_fetch(session, number)) for number in range(load.requests)
        ]
        await asyncio.gather(*tasks)


CLIENTS = {
    "sync": sync,
    "async": lambda load, record: asyncio.run(unbounded(load, record)),
    "bounded": lambda load, record: asyncio.run(bounded(load, record)),
}


def limit_open_files(wanted: int) -> int:
    """Set this process's soft limit of open files as near as may be; return what it is now."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def progress(record: Record) -> str:
    """How far it is, in a line for the person at the terminal."""
    text = f"{record.done:,} of {record.requests:,} requests over"
    if record.done:
        left = (time.monotonic() - record.begun) * (record.requests - record.done) / record.done
        text += f", about {left:.0f} s to go"
    return text


def tell(file: TextIO, record: Record, over: threading.Event) -> None:
    """Keep the progress in a file, anew each second, until all is over."""
    told = False
    while not told:
        file.seek(0)
        file.truncate()
        print(progress(record), file=file, flush=True)
        told = over.wait(1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fetch one URL many times.")
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True, help="bound of the bounded one")
    parser.add_argument("--open-files", type=int, required=True, help="soft limit of this process")
    parser.add_argument("--reuse", choices=("true", "false"), required=True)
    parser.add_argument("--body-bytes", type=int, required=True, help="of each answer, expected")
    # aiohttp: of the whole request. requests: of connecting, and of each wait for data.
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("-H", "--header", action="append", default=[], help="Name: value")
    parser.add_argument("--output", type=Path, required=True, help="written when all is over")
    parser.add_argument("--progress", type=Path, required=True, help="written once a second")
    load = parser.parse_args()
    load.reuse = load.reuse == "true"
    pairs = (line.partition(": ")[::2] for line in load.header)
    load.headers = {**OWN_HEADERS, **dict(pairs)}
    return load


def measure(load: argparse.Namespace) -> dict[str, Any]:
    """Run the client; the result is what it writes."""
    library = importlib.import_module(LIBRARY[load.client])
    open_files = limit_open_files(load.open_files)
    over = threading.Event()
    # Opened before: in the middle of the run there may be no descriptor left for it.
    with load.progress.open("w") as file:
        record = Record(load.requests)
        teller = threading.Thread(target=tell, args=(file, record, over), daemon=True)
        teller.start()
        before = resource.getrusage(resource.RUSAGE_SELF)
        started, record.begun = time.time(), time.monotonic()
        CLIENTS[load.client](load, record)
        seconds, finished = time.monotonic() - record.begun, time.time()
        after = resource.getrusage(resource.RUSAGE_SELF)
        over.set()
        teller.join()
    return {
        "format": FORMAT,
        "client": load.client,
        "versions": {"python": platform.python_version(), library.__name__: library.__version__},
        "requests": load.requests,
        "connections": load.connections,
        "reuse": load.reuse,
        "body_bytes": load.body_bytes,
        "timeout_s": load.timeout,
        "open_files": open_files,
        "local_ports": [int(port) for port in LOCAL_PORTS.read_text().split()],
        "started": started,
        "finished": finished,
        "seconds": seconds,
        "cpu_s": {
            "user": after.ru_utime - before.ru_utime,
            "system": after.ru_stime - before.ru_stime,
        },
        "max_rss_kb": after.ru_maxrss,
        "outcomes": list(record.outcomes),
        "start_s": [round(value, 6) for value in record.start],
        "duration_s": [round(value, 6) for value in record.duration],
        "outcome": record.outcome.tolist(),
    }


def main() -> None:
    load = arguments()
    packed = gzip.compress(json.dumps(measure(load)).encode(), compresslevel=4)
    part = load.output.with_name(f"{load.output.name}.part")
    with part.open("wb") as file:
        file.write(packed)
        file.flush()
        os.fsync(file.fileno())
    part.replace(load.output)


if __name__ == "__main__":
    main()
