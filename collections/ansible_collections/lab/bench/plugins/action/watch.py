"""Action plugin behind lab.bench.watch: the controller's part while a load is under way."""

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

from loadlab.scheduling import progress

# What the load takes beside its seconds: the check of the answer, the generator's start and end.
SLACK_S = 0.6
APART_S = 0.5
# Of a batch, whose client is what is measured; a load whose time is up is asked every second.
ASK_EVERY_S = 2


class ActionModule(ControllerAction):
    """Scrape once a second into the repetition's folder, and show how far it is.

    A recording that is there already is somebody's measurement, and an error.
    """

    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        dest = Path(args["dest"])
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(args["scrape"])) as pool:
            paths = [dest / f"{name}.prom.gz" for name in args["scrape"]]
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            recordings = [
                stack.enter_context(gzip.open(path, "xt", compresslevel=1)) for path in paths
            ]

            def scrape() -> None:
                pages = pool.map(page, args["scrape"].values())
                for recording, text in zip(recordings, pages, strict=True):
                    recording.write(text)

            expected = math.ceil(args["seconds"])
            ask_every_s = 1 if expected else ASK_EVERY_S
            what = progress.measurement(args["item"], args["path"], args["server"])
            ends = time.time() + args["item"]["seconds_left"]
            for second in range(math.ceil(args["most"]) + 1):
                wait = begun + second - time.monotonic()
                # What a host out of reach has made late is left out: between two scrapes close
                # together no CPU time passes.
                if wait < -APART_S:
                    continue
                time.sleep(max(wait, 0.0))
                scrape()
                if second < expected:
                    far = f"{second} of {args['seconds']:.0f} s"
                elif (second - expected) % ask_every_s == 0:
                    time.sleep(SLACK_S)
                    over, far = self._ask(args["until"])
                    if over:
                        break
                under_way(f"{what}: {far}; {progress.until(ends, time.time())}")
            else:
                time.sleep(APART_S)
            # The last one comes just after the load's end, for the counters until then.
            scrape()
        return {"changed": True}

    def _ask(self, command: str) -> tuple[bool, str]:
        """Whether the host says that the load is over, and how far it is."""
        try:
            said = self._low_level_execute_command(command)
        except AnsibleConnectionFailure:
            # The load goes on without anybody connected.
            return False, "the host is out of reach"
        return said["rc"] == 0, said["stdout"].strip()
