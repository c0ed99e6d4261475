"""Action plugin lab.bench.at_once: runs a command on each of several hosts, all at once.

Waits for all, and fails with the reasons of all that fail. A loop with delegate_to would take
longer for more hosts.
"""

from contextlib import nullcontext

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import (
    Elsewhere,
    at_once,
    failing_for_lost_hosts,
)
from msgspec import Struct


class Arguments(Struct, kw_only=True, frozen=True):
    """The shell command of each host, by inventory name."""

    commands: dict[str, str]
    then: dict[str, str] = {}  #: The same, for when all of ``commands`` have ended well.
    #: Whether a host out of reach fails the task, so that its block may rescue it.
    loss_fails: bool = False


class ActionModule(ControllerAction[Arguments]):
    _requires_connection = True

    def work(self, args: Arguments) -> dict[str, object]:
        names = (*args.commands, *args.then)
        hosts = {name: Elsewhere(self, name, self.variables) for name in names}
        with failing_for_lost_hosts() if args.loss_fails else nullcontext():
            at_once(hosts, args.commands)
            if args.then:
                at_once(hosts, args.then)
        return {"changed": True}
