"""Which differences between two runs concern one of their cells."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Cell, Deviation, Part, ReproductionPart
from loadlab.model.base import Json


def of_cell(cell: Cell, parts: list[ReproductionPart]) -> list[ReproductionPart]:
    """Return the deviations that concern the cell, by part. A part without any is left out.

    Options and thresholds are left out: a cell's own are in its definition, and the others change
    nothing that it measures. So are the controller and the hashes of lock files, whose pins are
    compared.
    """
    concerns = _concerns(cell)
    own = [
        replace(part, deviations=list(filter(concerns[part.part], part.deviations)))
        for part in parts
        if part.part in concerns
    ]
    return [part for part in own if part.deviations]


def _concerns(cell: Cell) -> Mapping[Part, Callable[[Deviation], bool]]:
    """Return the parts of the cell's environment, with which deviations of each concern it."""
    inputs = {
        f"application {cell.framework}",
        f"endpoint {cell.endpoint}",
        f"tuning profile {cell.tuning}",
        f"network profile {cell.network}",
    }
    generator = registry.get(cell.load.generator)
    pinned = {cell.framework, generator.role}
    if generator.mode == "batch":
        pinned.add("clients")
    return {
        "lab": _any,
        "input": lambda deviation: deviation.name in inputs,
        "pin": lambda deviation: deviation.name.partition("/")[0] in pinned,
        "hardware": lambda deviation: (
            deviation.name != "generators"
            or _program(deviation.original, generator.name)
            != _program(deviation.here, generator.name)
        ),
        "kernel": _any,
        "package": _any,
        "tuning": lambda deviation: deviation.name.startswith(f"{cell.tuning}: "),
    }


def _any(_: Deviation) -> bool:
    return True


def _program(programs: Json, name: str) -> Json:
    """Return the executable of a generator on a host; None where the host has none of it."""
    return programs.get(name) if isinstance(programs, dict) else None
