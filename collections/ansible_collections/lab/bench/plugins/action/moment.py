"""Action plugin lab.bench.moment: sets a start time for several hosts, each by its own clock."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.exporter import page

from loadlab.telemetry import node_exporter

# How many readings of a clock the median is taken of.
READINGS = 5


def ahead(url: str) -> float:
    """Return a host's clock minus the controller's in seconds.

    Raises TelemetryError where the exporter does not answer.
    """
    return node_exporter.clock_offset(
        node_exporter.parse("".join(page(url) for _ in range(READINGS)), url)
    )


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        exporters = args["exporters"]
        with ThreadPoolExecutor(len(exporters)) as pool:
            offsets = list(pool.map(ahead, exporters.values()))
        moment = time.time() + args["seconds"]
        return {
            "begin": {
                name: moment + offset for name, offset in zip(exporters, offsets, strict=True)
            }
        }
