"""Find why a client cannot have a generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlab.generators import registry
from loadlab.generators.generator import Generator
from loadlab.hosts.probe import HostProbe, program_machine
from loadlab.model import Reason


def _obstacle(
    host: HostProbe,
    generator: Generator,
    binary: str,
    controller: str,
) -> Reason | None:
    """Return why a client neither has nor can get a generator; None where it has or can.

    ``host``: with the program of the generator. ``binary``: path of the user's own executable on
    the controller, "" where none is named. ``controller``: an executable of the controller's
    architecture. Raises OSError where an executable cannot be read.
    """
    machine = program_machine(binary or (controller if generator.built else ""))
    if machine not in ("", host.machine):
        return _reason("generator_machine", generator, machine=host.machine, made_for=machine)
    if binary or not generator.snap or host.programs.get(generator.program):
        return None
    return _reason("generator_absent", generator)


def _reason(code: str, generator: Generator, **facts: str) -> Reason:
    return Reason(code=code, facts={"generator": generator.name, "snap": generator.snap, **facts})


def obstacles(
    host: HostProbe,
    names: Sequence[str],
    binaries: Mapping[str, str],
    controller: str,
) -> list[Reason]:
    """Return why a client cannot have generators; empty where it can have all.

    ``binaries``: main variable -> path of the user's own executable, or "". The others as for
    _obstacle(), which see for what is raised.
    """
    found = [
        _obstacle(host, entry, binaries.get(entry.binary, ""), controller)
        for entry in map(registry.get, names)
    ]
    return [why for why in found if why is not None]
