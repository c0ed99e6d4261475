"""What a host did during a load, from all of its recordings in a repetition's folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.core.errors import ResultError
from loadlab.core.model import HostTelemetry, RepetitionSetup
from loadlab.core.run_dir import ClientDir, RepetitionDir
from loadlab.telemetry import cores, drops, node_exporter, processes
from loadlab.telemetry.cores import Reading
from loadlab.telemetry.counters import Counters
from loadlab.telemetry.processes import Recording, Window


def server(
    folder: RepetitionDir,
    scrapes: list[node_exporter.Sample],
    setup: RepetitionSetup,
    window: Window,
) -> HostTelemetry:
    """Return the server's telemetry, without its services.

    ``window`` is by its clock. Raises ValueError for a recording that is not understood.
    """
    if setup.cpus is None or setup.interface is None:
        raise ResultError("no cpus or no interface: no load was offered")
    cpus, interface = setup.cpus.server, setup.interface.server
    ticks, readings = _readings(folder.cores)
    recorded = cores.counters(ticks, readings, cpus, interface)
    found = node_exporter.summarise(scrapes, cpus, window.start, window.end, interface, recorded)
    lost = drops.drops(readings, window.start, window.end, cpus, interface)
    found = replace(found, drops=lost)
    return _with_hardware(found, _processes(folder.processes), window, cpus)


def client(
    folder: ClientDir,
    scrapes: list[node_exporter.Sample],
    setup: RepetitionSetup,
    window: Window,
) -> HostTelemetry:
    """Return a client's telemetry, with its generator's processes.

    ``window`` is by its clock. Raises ValueError for a recording that is not understood.
    """
    if setup.cpus is None or setup.interface is None:
        raise ResultError("no cpus or no interface: no load was offered")
    cpus, interface = setup.cpus.client, setup.interface.client
    ticks, readings = _readings(folder.own_cores)
    recorded = cores.counters(ticks, readings, cpus, interface)
    found = node_exporter.summarise(scrapes, cpus, window.start, window.end, interface, recorded)
    lost = drops.drops(readings, window.start, window.end, cpus, interface)
    found = replace(found, drops=lost)
    recording = _processes(folder.own_processes)
    if recording is not None:
        found = replace(found, generator=processes.generator(recording, window, len(cpus)))
    return _with_hardware(found, recording, window, cpus)


def recorded(folder: RepetitionDir, setup: RepetitionSetup) -> dict[str, Counters | None]:
    """Return what each host recorded of its cores and link; None where it did not.

    Raises ValueError for a recording that is not understood.
    """
    if setup.cpus is None or setup.interface is None:
        raise ResultError("no cpus or no interface: no load was offered")
    return {
        "server": _counters(folder.cores, setup.cpus.server, setup.interface.server),
        "client": _counters(folder.own_cores, setup.cpus.client, setup.interface.client),
    }


def raw(folder: ClientDir) -> set[str]:
    """Return the names of a client's recordings in its folder."""
    return {path.name for path in (folder.own_cores, folder.own_processes) if path.exists()}


def _counters(path: Path, cpus: Sequence[int], interface: str) -> Counters | None:
    return cores.counters(*_readings(path), cpus, interface)


def _readings(path: Path) -> tuple[int, list[Reading]]:
    """Return the clock ticks per second, and the readings; none where nothing was recorded."""
    return cores.read(path) if path.exists() else (1, [])


def _processes(path: Path) -> Recording | None:
    return processes.read(path) if path.exists() else None


def _with_hardware(
    found: HostTelemetry, recording: Recording | None, window: Window, cpus: Sequence[int]
) -> HostTelemetry:
    if recording is None:
        return found
    frequency, throttled = processes.hardware(recording, window, cpus)
    return replace(found, frequency=frequency, throttled=throttled)
