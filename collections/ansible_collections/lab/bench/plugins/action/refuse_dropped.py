"""Action plugin lab.bench.refuse_dropped: ends a run that lacks a host."""

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.run.errors import LabError


class Arguments(Struct, kw_only=True, frozen=True):
    """Names of the hosts that Ansible dropped from the play; none where it dropped none."""

    hosts: list[str]


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        if args.hosts:
            raise LabError(f"The run ends here, without {', '.join(args.hosts)}.")
        return {}
