"""The disk and memory that a run needs on its clients, server and controller.

A generator that writes a row for each request keeps it in memory until its end, and the controller
fetches and reduces the file. Beside that each second of a load leaves recordings. The figures of a
row are in the generator's entry; those below were measured with tests/fixtures and runs of the lab.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loadlab.core.errors import PlanError
from loadlab.core.formatting import size
from loadlab.core.model import Load, Options
from loadlab.generators import registry
from loadlab.scheduling.experiments import PlannedExperiment
from loadlab.scheduling.plan import HostNeeds, Needs

# Bytes of recordings for each second of a load, compressed: telemetry, cores, processes, database.
RECORDED_BYTES = 10_000
# Bytes that the controller uses for each row: of the table that it reduces, beside the file; of the
# sorted copy of the file; in memory (71 MB for 1.8 million rows).
SPOOL_BYTES = 48
SORT_BYTES = 80
REDUCE_BYTES = 40
# Bytes for each row that the controller keeps, compressed: of the reduction (2.9 of short runs,
# less of long ones), or of the whole file with keep_requests (34 to 39).
KEPT_BYTES = 3
KEPT_WHOLE_BYTES = 40


@dataclass(frozen=True)
class Room:
    """What a machine has: free bytes of a file system, and available memory."""

    disk_bytes: int
    memory_bytes: int


def of(
    planned: Iterable[PlannedExperiment], options: Options, remaining: int, pairs: int
) -> Needs | None:
    """Return what the measurements that are left need; None where none is left.

    ``remaining``: number of measurements. ``pairs``: of hosts, which measure at the same time. A
    search counts with the rate that it starts at, and a rate that is not known yet not at all: the
    figures are then lower bounds.
    """
    loads = [_load(one) for one in planned]
    if not loads or not remaining:
        return None
    rows = [_rows(load) for load in loads]
    most = max(rows)
    seconds = max(_seconds(load) for load in loads)
    entry = registry.get(max(zip(rows, loads, strict=True), key=lambda one: one[0])[1].generator)
    kept = KEPT_WHOLE_BYTES if options.keep_requests else KEPT_BYTES
    mean = sum(rows) / len(rows)
    recorded = sum(_seconds(load) for load in loads) / len(loads) * RECORDED_BYTES
    each = max(1, options.clients)
    return Needs(
        # The clients of a server share its rows.
        client=HostNeeds(
            disk_bytes=round(most / each * entry.row_bytes + seconds * RECORDED_BYTES),
            memory_bytes=round(most / each * entry.row_memory_bytes),
        ),
        server=HostNeeds(disk_bytes=round(seconds * RECORDED_BYTES), memory_bytes=0),
        controller=HostNeeds(
            disk_bytes=round(
                pairs * most * entry.row_bytes + remaining * (mean * kept + 2 * recorded)
            ),
            memory_bytes=pairs * most * REDUCE_BYTES,
        ),
        temporary_bytes=pairs * most * (SPOOL_BYTES + SORT_BYTES),
    )


def _load(planned: PlannedExperiment) -> Load:
    """Return the load that makes the most of an experiment."""
    return max((item.cell.load for item in planned.items), key=_rows)


def _rows(load: Load) -> int:
    """Return how many rows the generator writes at most: of the load, or of its warm-up."""
    if not registry.get(load.generator).row_bytes or load.rate is None:
        return 0
    return round(load.rate * max(load.duration_s or 0, load.warmup_s))


def _seconds(load: Load) -> float:
    return (load.duration_s or 0) + load.warmup_s


def refuse_controller(
    found: Needs, results: Room, temporary: Room, shared: bool, hosts: int, base_bytes: int
) -> None:
    """Raise PlanError where the controller has too little disk or memory.

    ``results``, ``temporary``: the file systems of results/ and of temporary files; ``shared``:
    whether they are one. ``hosts``: pairs of hosts that are containers of this machine, with
    ``base_bytes`` of their own; 0 where the hosts are other machines.
    """
    clients = hosts * found.client.disk_bytes
    disk = found.controller.disk_bytes + (base_bytes if hosts else 0)
    disk += clients + hosts * found.server.disk_bytes
    disk += found.temporary_bytes if shared else 0
    memory = found.controller.memory_bytes + hosts * found.client.memory_bytes
    _refuse("The disk of results/ on this machine", "free", results.disk_bytes, disk)
    if not shared:
        there = temporary.disk_bytes
        _refuse("The disk of temporary files on this machine", "free", there, found.temporary_bytes)
    _refuse("This machine", "of available memory", results.memory_bytes, memory)


def _refuse(what: str, kind: str, there: int, needed: int) -> None:
    if there < needed:
        raise PlanError(
            f"{what} has {size(there)} {kind}, and the run needs {size(needed)}. Free some, or "
            "give a lower -e rate= or a shorter -e duration=."
        )
