"""Action plugin lab.bench.watch: scrapes the hosts and shows the progress during a load."""

from __future__ import annotations

import contextlib
import gzip
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    under_way,
)
from ansible_collections.lab.bench.plugins.plugin_utils.exporter import page

from loadlab.core import documents
from loadlab.scheduling import progress
from loadlab.scheduling.progress import Measuring

# Seconds between two scrapes at least: in quick succession they show no CPU time.
APART_S = 0.5
# Seconds between checks of a batch, whose client is the subject. Other loads are checked every
# second once their time is over.
ASK_EVERY_S = 2


class ActionModule(ControllerAction):
    """Scrapes once a second into the repetition's folder and shows the progress.

    An existing recording belongs to another measurement, so it is an error.
    """

    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(args["scrape"])) as pool:
            paths = [Path(name) for name in args["scrape"]]
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            recordings = [
                stack.enter_context(gzip.open(path, "xt", compresslevel=1)) for path in paths
            ]

            def scrape() -> float:
                scraped = time.monotonic()
                pages = pool.map(page, args["scrape"].values())
                for recording, text in zip(recordings, pages, strict=True):
                    recording.write(text)
                return scraped

            expected = math.ceil(args["seconds"])
            ask_every_s = 1 if expected else ASK_EVERY_S
            item = documents.decode(args["item"], Measuring, "item")
            what = progress.measurement(item, args["path"], args["server"])
            ends = time.time() + item.seconds_left
            last = -APART_S + begun
            for second in range(math.ceil(args["most"]) + 1):
                wait = begun + second - time.monotonic()
                # An unreachable host delays the loop: skip the scrapes that are late.
                if wait < -APART_S:
                    continue
                time.sleep(max(wait, 0.0))
                if second < expected:
                    far = f"{second} of {args['seconds']:.0f} s"
                elif (second - expected) % ask_every_s == 0:
                    over, far = self._ask(args["until"])
                    if over:
                        break
                if time.monotonic() - last >= APART_S:
                    last = scrape()
                under_way(f"{what}: {far}; {progress.until(ends, time.time())}")
            # A last scrape just after the load's end, for the counters until then.
            time.sleep(max(last + APART_S - time.monotonic(), 0.0))
            scrape()
        return {"changed": True}

    def _ask(self, command: str) -> tuple[bool, str]:
        """Return whether the host reports the end of the load, and the progress it reports."""
        try:
            said = self._low_level_execute_command(command)
        except AnsibleConnectionFailure:
            # The load continues without a connection.
            return False, "the host is out of reach"
        return said["rc"] == 0, said["stdout"].strip()
