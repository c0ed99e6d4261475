"""Action plugin behind lab.bench.watch: the controller's part while a load is under way."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.module_utils import telemetry

SPEC: dict[str, Any] = {
    "seconds": {"type": "float", "required": True},
    "dest": {"type": "path", "required": True},
    "record": {"type": "dict", "required": True},
    "scrape": {"type": "dict", "required": True},
}
TELL_EVERY_S = 10


def page(url: str) -> str:
    """One scrape, as text or as a failure that the recording keeps."""
    now = time.time()
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return telemetry.block(now, answer.read().decode())
    except OSError as problem:
        return telemetry.failed_block(now, str(problem))


class ActionModule(ActionBase):
    """Open the repetition's folder, scrape once a second, and say how far it is."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(SPEC)
        dest = Path(args["dest"])
        dest.mkdir(parents=True, exist_ok=True)
        (dest / "cell.json").write_text(json.dumps(args["record"], indent=1, sort_keys=True) + "\n")

        begun = time.monotonic()
        # Two more: the answer's check before the load, and the last counters after it.
        scrapes = int(args["seconds"]) + 3
        with contextlib.ExitStack() as files, ThreadPoolExecutor(len(args["scrape"])) as pool:
            recordings = {
                role: files.enter_context(
                    gzip.open(dest / f"telemetry-{role}.prom.gz", "wt", compresslevel=1)
                )
                for role in args["scrape"]
            }
            for second in range(scrapes):
                time.sleep(max(0.0, begun + second - time.monotonic()))
                for role, text in zip(
                    recordings, pool.map(page, args["scrape"].values()), strict=True
                ):
                    recordings[role].write(text)
                if second and second % TELL_EVERY_S == 0 and second < args["seconds"]:
                    left = round(args["seconds"]) - second
                    Display().display(f"      {second} s done, {left} s to go", color="bright blue")
        return {**result, "changed": True}
