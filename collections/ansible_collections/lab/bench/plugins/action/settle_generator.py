"""Action plugin lab.bench.settle_generator; loadlab/planning/generator_choice.py does the work."""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
)
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts.probe import HostProbe
from loadlab.planning import generator_choice
from loadlab.planning.generator_choice import Alternatives
from loadlab.report.words import curves
from loadlab.scheduling.plan import Plan


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        found = generator_choice.settle(
            Alternatives(decode(args["plan"], Plan), decode(args["instead"], Plan)),
            decode(args["clients"], dict[str, HostProbe]),
            args["fetched_sources"],
        )
        return {"plan": for_ansible(found), "told": curves.told(found)}
