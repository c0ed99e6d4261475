"""Action plugin lab.bench.extra_vars: refuses names and values given with -e that nothing accepts.

``names`` of the result: the variables of -e, from words, JSON and files.
loadlab/plan/user_options.py does the work.
"""

from pathlib import Path

from ansible import context
from ansible.utils.vars import load_extra_vars
from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.plan import user_options


class Arguments(Struct, kw_only=True, frozen=True):
    """The lab's top folder, and the specs of the main variables, which are suggested first."""

    root: Path
    specs: dict[str, object]


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        variables = load_extra_vars(self._loader)
        playbooks = [Path(name) for name in context.CLIARGS.get("args", ()) if Path(name).is_file()]
        user_options.refuse_names(
            args.root, list(args.specs), variables, playbooks, self._inventory()
        )
        return {"names": list(variables)}

    def _inventory(self) -> list[dict[str, object]]:
        """Return the variables of each host and group in the inventory, without those of -e."""
        inventory = self.variables["hostvars"]._inventory
        every = [*inventory.groups.values(), *inventory.hosts.values()]
        beside = get_vars_from_path(self._loader, self._loader.get_basedir(), every, "task")
        files = get_vars_from_inventory_sources(self._loader, inventory._sources, every, "task")
        return [*(group.get_vars() for group in every), files, beside]
