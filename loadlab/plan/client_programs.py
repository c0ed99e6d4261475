"""Find why a client cannot have a generator."""

from collections.abc import Mapping, Sequence

from loadlab.generators import registry
from loadlab.hosts.probe import HostProbe, program_machine
from loadlab.model import Reason


def obstacles(
    host: HostProbe, names: Sequence[str], binaries: Mapping[str, str], controller: str
) -> list[Reason]:
    """Return why a client neither has nor can get generators; empty where it has or can get all.

    ``host``: with the programs of the generators. ``binaries``: main variable -> path of the user's
    own executable on the controller, or "". ``controller``: an executable of the controller's
    architecture. Raises OSError where an executable cannot be read.
    """
    reasons = []
    for generator in map(registry.get, names):
        facts = {"generator": generator.name, "snap": generator.snap}
        binary = binaries.get(generator.binary, "")
        machine = program_machine(binary or (controller if generator.built else ""))
        if machine not in ("", host.machine):
            facts |= {"machine": host.machine, "made_for": machine}
            reasons.append(Reason(code="generator_machine", facts={**facts}))
        elif not binary and generator.snap and not host.programs.get(generator.program):
            reasons.append(Reason(code="generator_absent", facts={**facts}))
    return reasons
