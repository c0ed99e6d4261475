"""The disk and memory that a run needs on its clients, server and controller.

A generator that writes a row for each request keeps rows in memory until its end, and the
controller fetches and reads the file. Beside that each second of a load leaves recordings. The
figures of a row are in the generator's entry; those below were measured with tests/fixtures and
runs of the lab.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from loadlab.generators import registry
from loadlab.model import Load, Options
from loadlab.plan.plan_document import HostNeeds, Needs, PlannedExperiment
from loadlab.run.errors import PlanError
from loadlab.run.formatting import size

# Bytes of recordings for each second of a load, compressed: telemetry, cores, processes, database.
RECORDED_BYTES = 10_000
# Bytes of a generator's histograms for each second of a load, at most, where it writes no rows.
HISTOGRAM_BYTES = 12_000


@dataclass(frozen=True)
class Room:
    """What a machine has: free bytes of a file system, and available memory."""

    disk_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class _LoadNeeds:
    """What one load needs, bytes."""

    seconds: float  #: How long it lasts.
    raw: float = 0  #: Of the generator's file.
    kept: float = 0  #: Of that on the controller.
    client: float = 0  #: Of the generator's memory, on each client.
    #: reading, temporary: of the controller's memory and disk while it reads the file.
    reading: float = 0
    temporary: float = 0


def of(
    planned: Iterable[PlannedExperiment], options: Options, remaining: int, pairs: int
) -> Needs | None:
    """Return what the measurements that are left need; None where none is left.

    ``remaining``: number of measurements. ``pairs``: of hosts, which measure at the same time. A
    search counts with the rate that it starts at, and a rate that is not known yet not at all: the
    figures are then lower bounds.
    """
    loads = [
        # The load that makes the most of an experiment.
        max((item.cell.load for item in experiment.items), key=_requests)
        for experiment in planned
    ]
    if not loads or not remaining:
        return None
    needs = [_needs_of(load, options) for load in loads]
    raw = max(need.raw for need in needs)
    recorded = max(need.seconds for need in needs) * RECORDED_BYTES
    kept = sum(need.kept + 2 * need.seconds * RECORDED_BYTES for need in needs)
    return Needs(
        # The clients of a server share its rows.
        client=HostNeeds(
            disk_bytes=round(raw / max(1, options.clients) + recorded),
            memory_bytes=round(max(need.client for need in needs)),
        ),
        server=HostNeeds(disk_bytes=round(recorded), memory_bytes=0),
        controller=HostNeeds(
            disk_bytes=round(pairs * raw + remaining * kept / len(loads)),
            memory_bytes=round(pairs * max(need.reading for need in needs)),
        ),
        temporary_bytes=round(pairs * max(need.temporary for need in needs)),
    )


def _needs_of(load: Load, options: Options) -> _LoadNeeds:
    entry, seconds = registry.get(load.generator), (load.duration_s or 0) + load.warmup_s
    requests, clients = _requests(load), max(1, options.clients)
    if not entry.row_bytes or not requests:
        return _LoadNeeds(seconds)
    in_memory = min(requests / clients, entry.memory_rows_max or math.inf)
    memory = in_memory * entry.row_memory_bytes
    if entry.rows_max and (not options.keep_requests or requests / clients > entry.rows_max):
        histograms = clients * seconds * HISTOGRAM_BYTES
        return _LoadNeeds(seconds, raw=histograms, kept=histograms, client=memory)
    return _LoadNeeds(
        seconds,
        raw=requests * entry.row_bytes,
        kept=requests * entry.row_kept_bytes,
        client=memory,
        reading=requests * entry.row_reading_bytes,
        temporary=requests * entry.row_temporary_bytes,
    )


def _requests(load: Load) -> int:
    """Return the requests of a load or, if there are more, of its warm-up; 0 without a rate."""
    of_visit = len(load.session) if load.session else 1
    return round((load.rate or 0) * max(load.duration_s or 0, load.warmup_s) * of_visit)


def refuse_controller(
    needs: Needs, results: Room, temporary: Room, shared: bool, hosts: int, base_bytes: int
) -> None:
    """Raise PlanError where the controller has too little disk or memory.

    ``results``, ``temporary``: the file systems of results/ and of temporary files; ``shared``:
    whether they are one. ``hosts``: pairs of hosts that are containers of this machine, with
    ``base_bytes`` of their own; 0 where the hosts are other machines.
    """
    clients = hosts * needs.client.disk_bytes
    disk = needs.controller.disk_bytes + (base_bytes if hosts else 0)
    disk += clients + hosts * needs.server.disk_bytes
    disk += needs.temporary_bytes if shared else 0
    memory = needs.controller.memory_bytes + hosts * needs.client.memory_bytes
    _refuse("The disk of results/ on this machine", "free", results.disk_bytes, disk)
    if not shared:
        place = "The disk of temporary files on this machine"
        _refuse(place, "free", temporary.disk_bytes, needs.temporary_bytes)
    _refuse("This machine", "of available memory", results.memory_bytes, memory)


def _refuse(place: str, kind: str, available: int, needed: int) -> None:
    if available < needed:
        raise PlanError(
            f"{place} has {size(available)} {kind}, and the run needs {size(needed)}. Free some, "
            "or give a lower -e rate= or a shorter -e duration=."
        )
