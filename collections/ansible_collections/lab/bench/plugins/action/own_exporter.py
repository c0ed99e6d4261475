"""Action plugin lab.bench.own_exporter: checks that an exporter runs on the host under test."""

from __future__ import annotations

import http.client
from datetime import UTC, datetime
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils import exporter
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.run import formatting
from loadlab.run.errors import LabError
from loadlab.telemetry import node_exporter


def moment(seconds: int) -> str:
    """Format unix seconds as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        url, booted = args["url"], args["booted"]
        try:
            found = node_exporter.booted(exporter.fetch(url))
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise LabError(
                f"The telemetry of this host cannot be read at {url}: "
                f"{formatting.one_line(f'{type(problem).__name__}: {problem}')}. See that "
                "loadlab-exporter runs there; playbooks/deploy.yml puts it there. No load "
                "was offered."
            ) from None
        if found != booted:
            raise LabError(
                f"The telemetry at {url} is another machine's: that was booted at {moment(found)}, "
                f"and this host at {moment(booted)}. Let nothing else on this machine listen there "
                "(ss -ltnp says what does), and run the same command again. No load was offered."
            )
        return {}
