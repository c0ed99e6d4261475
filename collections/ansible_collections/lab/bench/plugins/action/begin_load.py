"""Action plugin lab.bench.begin_load: prepares the server, and begins one load on all clients."""

from __future__ import annotations

import contextlib
import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import Elsewhere, at_once
from ansible_collections.lab.bench.plugins.plugin_utils.exporter import Exporter, reason

from loadlab.generators import load_run
from loadlab.run.errors import LabError
from loadlab.telemetry import node_exporter

# Readings of a clock; the one with the quickest answer counts.
READINGS = 5


def ahead(url: str) -> float:
    """Return a host's clock minus the controller's in seconds.

    Raises LabError where the exporter does not answer.
    """
    with contextlib.closing(Exporter(url)) as exporter:
        try:
            pages = [exporter.read() for _ in range(READINGS)]
        except (OSError, http.client.HTTPException) as problem:
            raise LabError(f"the clock cannot be read at {url}: {reason(problem)}") from None
    best = min(pages, key=lambda page: page.took_s)
    block = node_exporter.block(best.t, best.text)
    return node_exporter.clock_offset(node_exporter.parse(block, url))


class ActionModule(ControllerAction):
    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        commands = {one["name"]: one["begin"] for one in args["offers"]}
        first = args["first"]
        hosts = {name: Elsewhere(self, name, self.variables) for name in (*first, *commands)}
        if first:
            at_once(hosts, first)
        if len(commands) == 1:
            at_once(hosts, {name: f"BEGIN_AT=; {text}" for name, text in commands.items()})
            return {"changed": True}
        # Also connects where a connection ended meanwhile.
        said = at_once(hosts, dict.fromkeys(commands, "true"))
        with ThreadPoolExecutor(len(commands)) as pool:
            clocks = pool.map(ahead, [one["exporter"] for one in args["offers"]])
            offsets = dict(zip(commands, clocks, strict=True))
        slowest_s = max(one.took_s for one in said.values())
        begin = time.time() + load_run.until_begin_s(args["seconds"], slowest_s)
        told = {
            name: f"BEGIN_AT={begin + offsets[name]:.6f}; {text}" for name, text in commands.items()
        }
        at_once(hosts, told)
        # What follows is timed from here: the measurement begins after ``seconds``.
        time.sleep(max(begin - args["seconds"] - time.time(), 0.0))
        return {"changed": True}
