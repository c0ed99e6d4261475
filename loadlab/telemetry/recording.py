"""Record the telemetry of one host during a load, in a thread of its own."""

import contextlib
import gzip
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from loadlab.telemetry import exporter, node_exporter
from loadlab.telemetry.exporter import Exporter

# Seconds between two scrapes, and the least: in quick succession they show no CPU time.
EVERY_S = 1.0
APART_S = 0.5


class Recording:
    """Scrapes a host each second until the load is over, and once more after that.

    ``ends_s``: seconds after which the load is likely over, 0 where that cannot be told. No second
    begins with a scrape then, which the last one would have to wait for.

    A host that answers late or not at all delays no other host's scrapes. Where nothing listens any
    more, SSH ended, through which the exporter is read: then ``reconnect`` is called, if any, which
    raises ConnectionError where it fails. So only the seconds until then are missing.
    """

    def __init__(
        self,
        path: Path,
        url: str,
        over: threading.Event,
        reconnect: Callable[[], object] | None = None,
        ends_s: float = 0.0,
    ) -> None:
        # An existing recording belongs to another measurement, so it is an error.
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = gzip.open(path, "xt", compresslevel=1)  # noqa: SIM115
        self._exporter = Exporter(url)
        self._reconnect = reconnect
        self._over = over
        self._ends_s = ends_s
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Return when the recording is whole. Raises what ended it early."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with self._file, contextlib.closing(self._exporter):
                self._scrape_until_over()
        except Exception as failure:
            self._failure = failure

    def _scrape_until_over(self) -> None:
        begun = time.monotonic()
        at, last = begun, begun - APART_S
        while True:
            over = self._over.wait(max(at - time.monotonic(), 0.0))
            if over:
                # For the counters until the load's end.
                time.sleep(max(last + APART_S - time.monotonic(), 0.0))
            last = time.monotonic()
            self._file.write(self._block())
            if over:
                return
            # Scrape on whole seconds since the start; skip the seconds that have passed.
            late = max(last + APART_S, time.monotonic() - APART_S) - begun
            at = begun + math.ceil(late / EVERY_S) * EVERY_S
            if abs(at - begun - self._ends_s) < APART_S:
                at += EVERY_S

    def _block(self) -> str:
        try:
            return self._exporter.block()
        except ConnectionRefusedError as refused:
            now, reason = self._exporter.now(), exporter.reason(refused)
        if self._reconnect is not None:
            try:
                self._reconnect()
            except ConnectionError as problem:
                reason = f"{reason}; {exporter.reason(problem)}"
        return node_exporter.failed_block(now, reason)
