"""Action plugin lab.bench.refuse_dropped; loadlab/hosts/dropped.py has the words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import Elsewhere

from loadlab.hosts import dropped


def answers(host: Elsewhere) -> bool:
    """Return whether a host answers over SSH."""
    try:
        host.run("true")
    except AnsibleConnectionFailure:
        return False
    return True


class ActionModule(ControllerAction):
    _requires_connection = True

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        if not args["hosts"]:
            return {}
        hosts = [Elsewhere(self, name, self.variables) for name in args["hosts"]]
        with ThreadPoolExecutor(len(hosts)) as pool:
            found = dict(zip(args["hosts"], pool.map(answers, hosts), strict=True))
        raise ValueError(dropped.refusal(found, args["resume_args"]))
