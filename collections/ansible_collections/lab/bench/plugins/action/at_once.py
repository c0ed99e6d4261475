"""Action plugin lab.bench.at_once: runs a command on each of several hosts, all at once."""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import Elsewhere, at_once


class ActionModule(ControllerAction):
    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        commands, then = args["commands"], args["then"]
        hosts = {name: Elsewhere(self, name, self.variables) for name in (*commands, *then)}
        at_once(hosts, commands)
        if then:
            at_once(hosts, then)
        return {"changed": True}
