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

from ansible_collections.lab.bench.plugins.module_utils import files, telemetry
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

TELL_EVERY_S = 10
# What the load takes beside its seconds: the check of the answer, the generator's start and end.
SLACK_S = 0.6
APART_S = 0.5


def page(url: str) -> str:
    """One scrape, as text or as a failure that the recording keeps."""
    now = time.time()
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return telemetry.block(now, answer.read().decode())
    except OSError as problem:
        return telemetry.failed_block(now, str(problem))


class ActionModule(ControllerAction):
    """Open the repetition's folder, scrape once a second, and say how far it is."""

    SPEC: ClassVar[dict[str, Any]] = {
        "seconds": {"type": "float", "required": True},
        "dest": {"type": "path", "required": True},
        "record": {"type": "dict", "required": True},
        "scrape": {"type": "dict", "required": True},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        dest = Path(args["dest"])
        # A folder that is there already holds somebody's measurement.
        dest.mkdir(parents=True)
        files.write(dest / "cell.json", files.dump(args["record"]))
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(args["scrape"])) as pool:
            recordings = {
                role: stack.enter_context(
                    gzip.open(dest / f"telemetry-{role}.prom.gz", "wt", compresslevel=1)
                )
                for role in args["scrape"]
            }
            # The last one comes just after the load's end, for the counters until then.
            seconds = math.ceil(args["seconds"])
            last = seconds + SLACK_S
            for second in [*range(seconds + 1), last]:
                wait = begun + second - time.monotonic()
                # What a host out of reach has made late is left out: between two scrapes close
                # together no CPU time passes.
                if wait < -APART_S and second != last:
                    continue
                time.sleep(max(wait, APART_S) if second == last else max(wait, 0.0))
                pages = pool.map(page, args["scrape"].values())
                for recording, text in zip(recordings.values(), pages, strict=True):
                    recording.write(text)
                if second and second % TELL_EVERY_S == 0 and second < seconds:
                    tell(f"    {second} s done, {round(args['seconds']) - second} s to go")
        return {"changed": True}
