"""Action plugin lab.bench.first_contact: runs a script, or says why the host is out of reach.

``stdout`` of the result: what the script printed.
"""

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.hosts import probe
from loadlab.run.errors import LabError


class Arguments(Struct, kw_only=True, frozen=True):
    """What is run in a host's login shell."""

    script: str  #: Changes nothing, as it also runs in check mode.
    make: str = ""  #: The command that creates the host, if the lab does so.
    unchanged: str  #: A sentence on what was not changed, should the host be out of reach.


class ActionModule(ControllerAction[Arguments]):
    _requires_connection = True

    def work(self, args: Arguments) -> dict[str, object]:
        try:
            # Run by the login shell, so the host needs nothing else.
            said = self._low_level_execute_command(args.script, executable=False)
        except AnsibleConnectionFailure as problem:
            address = str(self._connection.get_option("host"))
            refusal = probe.out_of_reach(address, str(problem), args.make, args.unchanged)
            return {"unreachable": True, "msg": refusal}
        if said["rc"] != 0:
            raise LabError(f"the host could not be looked at: {said['stderr'] or said['stdout']}")
        return {"stdout": said["stdout"]}
