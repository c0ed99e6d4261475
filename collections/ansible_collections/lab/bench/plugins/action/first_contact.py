"""Action plugin behind lab.bench.first_contact; its refusal stands in loadlab/hosts/probe.py."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.hosts import probe


class ActionModule(ControllerAction):
    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            # As the login shell reads it: nothing is needed on the host but that.
            said = self._low_level_execute_command(args["script"], executable=False)
        except AnsibleConnectionFailure as problem:
            address = str(self._connection.get_option("host"))
            raise ValueError(probe.out_of_reach(address, str(problem), args["make"])) from None
        if said["rc"] != 0:
            raise ValueError(f"the host could not be looked at: {said['stderr'] or said['stdout']}")
        return {"stdout": said["stdout"]}
