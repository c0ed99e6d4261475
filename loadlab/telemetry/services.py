"""What the server's services and its database did over a load, from all of its recordings.

The CPU time of a service is that of its control group: it is exact, it has that of processes and
threads that ended, and it is read five times a second. Where the kernel does not have it, it is
that of the processes, read once a second.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from loadlab.model import Database, Processes, ServiceProcesses
from loadlab.run.run_dir import CORES, DATABASE, PROCESSES
from loadlab.telemetry import counters, database, host_recording, processes
from loadlab.telemetry.database import DatabaseReading
from loadlab.telemetry.host_recording import Reading
from loadlab.telemetry.processes import Recording
from loadlab.telemetry.recordings import ALONE, Served, Window


def server(
    rep_dir: Path, window: Window, cpus: int, served: Served = ALONE
) -> tuple[ServiceProcesses | None, Database | None]:
    """Return what was recorded of a repetition's server; None where it was not.

    ``cpus``: processors of the server. Of stacks that are up together PostgreSQL's CPU time is that
    of the stack's own sessions, with their share of what belongs to none.
    """
    if not (rep_dir / PROCESSES).exists():
        return None, None
    database_readings = []
    if (rep_dir / DATABASE).exists():
        database_readings = database.read(rep_dir / DATABASE)
    recording = processes.read(rep_dir / PROCESSES)
    apart = {reading.pid for reading in database_readings}
    services = processes.summarise(recording, window, cpus, apart, served)
    if (rep_dir / CORES).exists():
        _, readings = host_recording.read(rep_dir / CORES)

        def of_groups(over: Window) -> dict[str, float]:
            """Return the times without that of the connection that read the statistics."""
            seconds = spent_s(readings, over, served)
            if "postgresql" in seconds:
                reader_s = processes.spent_s(recording, over, "postgresql", apart) or 0.0
                seconds["postgresql"] = max(0.0, seconds["postgresql"] - reader_s)
            return seconds

        spent, loaded = of_groups(window), of_groups(window.load)
        system = spent_s(readings, window, served, lambda reading: reading.system)
        available_s = cpus * (window.end - window.start)
        parts = {name: seconds / available_s for name, seconds in loaded.items()}
        services = _with(services, spent, system, parts)
    if served.sessions is not None and services.postgresql is not None:
        # Without a recording of the database, the endpoint does not ask it.
        share: float | None = 1 / served.places
        if database_readings:
            share = _share(recording, window, database_readings, served.sessions)
        services = replace(services, postgresql=_part(services.postgresql, share))
    return services, database.summarise(database_readings, window)


def spent_s(
    readings: Sequence[Reading],
    window: Window,
    served: Served = ALONE,
    usage: Callable[[Reading], Mapping[str, int]] = lambda reading: reading.own,
) -> dict[str, float]:
    """Return service -> seconds of CPU of its control group over the load, and up to its last
    answer where the window has that.

    ``usage``: returns control group -> µs. A service is
    absent where a reading around or during the load lacks its control group.
    """
    around = window.around([reading.t for reading in readings])
    if around is None:
        return {}
    first, last, _ = around
    if window.finished is None and last + 1 < len(readings):
        # The rate after the load, for the edge.
        last += 1
    seconds: dict[str, float] = {}
    for service, group in served.control_groups.items():
        used = [
            next((us for name, us in usage(reading).items() if name.endswith(group)), None)
            for reading in readings[: last + 1]
        ]
        absent = [place for place, us in enumerate(used) if us is None]
        begin = absent[-1] + 1 if absent else 0
        if begin <= first:
            t = [reading.t for reading in readings[begin : last + 1]]
            values = [us / 1e6 for us in used[begin:] if us is not None]
            seconds[service] = _rise(t, values, first - begin, window)
    return seconds


def _share(
    recording: Recording, window: Window, readings: Sequence[DatabaseReading], sessions: str
) -> float | None:
    """Return the part of the CPU time of all stacks' sessions that the sessions of this name have.

    None where it is not known: without sessions that have a name of a place.
    """
    all_pids = {pid for reading in readings for pids in reading.places.values() for pid in pids}
    own = {pid for reading in readings for pid in reading.places.get(sessions, ())}
    spent_s = [
        processes.spent_s(recording, window, "postgresql", pids) or 0.0 for pids in (own, all_pids)
    ]
    return spent_s[0] / spent_s[1] if spent_s[1] else None


def _part(used: Processes, share: float | None) -> Processes:
    """Return the figures of a service with a share of its CPU time; without it where that is not
    known."""
    shares = {
        name: None if share is None or getattr(used, name) is None else share * getattr(used, name)
        for name in ("cpu_s", "cpu")
    }
    return replace(used, **shares)


def _rise(t: Sequence[float], values: Sequence[float], first: int, window: Window) -> float:
    """Return by how much a counter rose from the start of the load to the last of its readings, or
    to the end of the load where the window has no other.

    ``first``: the last reading before the start. Between it and the next, the rates before and
    after decide how much belongs to the load, so that an application that still begins is left
    out. Without readings before it, all of it does, unless a warm-up ran.
    """
    # A service that starts again counts from 0.
    steps = [after - before if after >= before else after for before, after in pairwise(values)]
    total = np.concatenate([[0.0], np.cumsum(steps)])
    begun = float(total[first])
    if first > 0 or window.warmed:
        begun = counters.at_edge(np.array(t), total, window.start)
    ended = float(total[-1])
    if window.finished is None:
        ended = counters.at_edge(np.array(t), total, window.end)
    return ended - begun


def _with(
    services: ServiceProcesses,
    spent: Mapping[str, float],
    system: Mapping[str, float],
    parts: Mapping[str, float],
) -> ServiceProcesses:
    """Return the figures of the services with the CPU time of their control groups.

    ``spent``, ``system``: seconds, up to the last answer. ``parts``: of the cores' time during the
    load.
    """
    corrected: dict[str, Processes | None] = {}
    for name in processes.GROUPS:
        used: Processes | None = getattr(services, name)
        if used is not None and name in spent:
            # A service that ended right after the load lacks the reading that the part needs.
            used = replace(used, cpu_s=spent[name], cpu=parts.get(name, used.cpu))
            if spent[name]:
                used = replace(used, system_share=min(1.0, system[name] / spent[name]))
        corrected[name] = used
    return ServiceProcesses(**corrected)
