"""Action plugin lab.bench.refuse_dropped: ends a run that lacks a host."""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.run.errors import LabError


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        if args["hosts"]:
            raise LabError(f"The run ends here, without {', '.join(args['hosts'])}.")
        return {}
