"""Action plugin behind lab.bench.watch: the controller's part while a load is under way."""

from __future__ import annotations

import contextlib
import gzip
import math
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.module_utils import telemetry
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

TELL_EVERY_S = 10
# What the load takes beside its seconds: the check of the answer, the generator's start and end.
SLACK_S = 0.6
APART_S = 0.5
ASK_EVERY_S = 2


def page(url: str) -> str:
    """One scrape, as text or as a failure that the recording keeps."""
    now = time.time()
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return telemetry.block(now, answer.read().decode())
    except OSError as problem:
        return telemetry.failed_block(now, str(problem))


class ActionModule(ControllerAction):
    """Scrape once a second into the repetition's folder, and say how far it is.

    A recording that is there already is somebody's measurement, and an error.
    """

    SPEC: ClassVar[dict[str, Any]] = {
        "seconds": {"type": "float", "required": True},
        "until": {"type": "str"},
        "dest": {"type": "path", "required": True},
        "scrape": {"type": "dict", "required": True},
    }
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

            seconds = math.ceil(args["seconds"])
            for second in range(seconds + 1):
                wait = begun + second - time.monotonic()
                # What a host out of reach has made late is left out: between two scrapes close
                # together no CPU time passes.
                if wait < -APART_S:
                    continue
                time.sleep(max(wait, 0.0))
                scrape()
                far = f"{round(args['seconds']) - second} s to go"
                if args["until"] and second % ASK_EVERY_S == 0:
                    over, far = self._ask(args["until"])
                    if over:
                        break
                if second and second % TELL_EVERY_S == 0 and second < seconds:
                    tell(f"    {second} s done, {far}")
            # The last one comes just after the load's end, for the counters until then.
            wait = begun + seconds + SLACK_S - time.monotonic()
            time.sleep(APART_S if args["until"] else max(wait, APART_S))
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
