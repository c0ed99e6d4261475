"""Action plugin lab.bench.first_contact; loadlab/hosts/probe.py has its message."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.hosts import probe
from loadlab.run.errors import LabError


class ActionModule(ControllerAction):
    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            # Run by the login shell, so the host needs nothing else.
            said = self._low_level_execute_command(args["script"], executable=False)
        except AnsibleConnectionFailure as problem:
            address = str(self._connection.get_option("host"))
            told = probe.out_of_reach(address, str(problem), args["make"])
            return {"unreachable": True, "msg": told}
        if said["rc"] != 0:
            raise LabError(f"the host could not be looked at: {said['stderr'] or said['stdout']}")
        return {"stdout": said["stdout"]}
