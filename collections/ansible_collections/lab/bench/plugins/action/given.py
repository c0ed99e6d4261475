"""Action plugin lab.bench.given; loadlab/plan/user_options.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import context
from ansible.utils.vars import load_extra_vars
from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.plan import user_options
from loadlab.run.errors import PlanError


class ActionModule(ControllerAction):
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self._hostvars: Any = (task_vars or {})["hostvars"]
        return super().run(tmp, task_vars)

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        given = load_extra_vars(self._loader)
        playbooks = [Path(name) for name in context.CLIARGS.get("args", ()) if Path(name).is_file()]
        try:
            user_options.refuse_names(
                Path(args["root"]), list(args["specs"]), given, playbooks, self._inventory()
            )
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        return {"names": list(given)}

    def _inventory(self) -> list[dict[str, Any]]:
        """Return the variables of each host and group in the inventory, without those of -e."""
        inventory = self._hostvars._inventory
        every = [*inventory.groups.values(), *inventory.hosts.values()]
        beside = get_vars_from_path(self._loader, self._loader.get_basedir(), every, "task")
        files = get_vars_from_inventory_sources(self._loader, inventory._sources, every, "task")
        return [*(each.get_vars() for each in every), files, beside]
