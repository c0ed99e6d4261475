"""What a host did during a load, from all of its recordings in a repetition's folder."""

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from loadlab.model import HostTelemetry, RepetitionSetup
from loadlab.run.errors import ResultError
from loadlab.run.methods import ROOT
from loadlab.run.run_dir import ClientDir, RepetitionDir
from loadlab.stacks import reverse_proxies
from loadlab.telemetry import (
    host_recording,
    node_exporter,
    processes,
    queues,
    reverse_proxy_log,
    services,
)
from loadlab.telemetry.counters import Counters
from loadlab.telemetry.host_recording import Reading
from loadlab.telemetry.processes import Recording
from loadlab.telemetry.recordings import Served, Window


class _Host(NamedTuple):
    """The cores of a host that the lab uses, and the interface that carries the load."""

    cpus: list[int]
    interface: str


def server(
    folder: RepetitionDir,
    scrapes: list[node_exporter.Sample],
    setup: RepetitionSetup,
    window: Window,
) -> HostTelemetry:
    """Return the server's telemetry, without its services' processes.

    ``window`` is by its clock. Raises ValueError for a recording that is not understood.
    """
    own, paths = served(setup), (folder.cores, folder.processes)
    telemetry, _ = _during(window, scrapes, _hosts(setup)["server"], *paths)
    form = reverse_proxies.reverse_proxy(ROOT, own.proxy).log
    if form is not None and folder.reverse_proxy_log.exists():
        lines = reverse_proxy_log.read(folder.reverse_proxy_log)
        log = reverse_proxy_log.summarise(lines, form, window.start, window.end)
        telemetry = replace(telemetry, reverse_proxy=log)
    if telemetry.per_second is None or not folder.queues.exists():
        return telemetry
    recorded = queues.read(folder.queues)
    return replace(
        telemetry,
        accept_queues=queues.accept_queues(recorded, window.start, telemetry.per_second.t, own),
        connections=queues.connections(recorded, window.start, window.end),
    )


def closed_loops(
    folder: RepetitionDir,
    scrapes: list[node_exporter.Sample],
    setup: RepetitionSetup,
    window: Window,
) -> HostTelemetry:
    """Return the server's cores and services in the closed loops of lanes, without series.

    ``window`` is by its clock. Raises ValueError for a recording that is not understood, or that
    ended before.
    """
    paths = (folder.cores, folder.processes)
    telemetry, _ = _during(window, scrapes, _hosts(setup)["server"], *paths)
    used, _ = services.server(folder.path, window, telemetry.cores, served(setup))
    return replace(telemetry, processes=used, per_second=None)


def served(setup: RepetitionSetup) -> Served:
    """Return under which names the services of a repetition's stack were recorded."""
    proxy = reverse_proxies.running(setup.cell.reverse_proxy)[-1]
    return Served(proxy, setup.lane.place, len(setup.lane.cells)) if setup.lane else Served(proxy)


def client(
    folder: ClientDir, scrapes: list[node_exporter.Sample], setup: RepetitionSetup, window: Window
) -> HostTelemetry:
    """Return a client's telemetry, with its generator's processes.

    ``window`` is by its clock. Raises ValueError for a recording that is not understood.
    """
    host, paths = _hosts(setup)["client"], (folder.own_cores, folder.own_processes)
    telemetry, recording = _during(window, scrapes, host, *paths)
    if recording is None:
        return telemetry
    return replace(telemetry, generator=processes.generator(recording, window, len(host.cpus)))


def recorded(folder: RepetitionDir, setup: RepetitionSetup) -> dict[str, Counters | None]:
    """Return what each host recorded of its cores and link; None where it did not.

    Raises ValueError for a recording that is not understood.
    """
    paths = {"server": folder.cores, "client": folder.own_cores}
    return {
        role: host_recording.counters(*_readings(paths[role]), host.cpus, host.interface)
        for role, host in _hosts(setup).items()
    }


def raw(folder: ClientDir) -> set[str]:
    """Return the names of a client's recordings in its folder."""
    return {path.name for path in (folder.own_cores, folder.own_processes) if path.exists()}


def _hosts(setup: RepetitionSetup) -> dict[str, _Host]:
    """Return both hosts by role. Raises ResultError where no load was offered."""
    cpus, interface = setup.cpus, setup.interface
    if cpus is None or interface is None:
        raise ResultError("no cpus or no interface: no load was offered")
    return {
        "server": _Host(cpus.server, interface.server),
        "client": _Host(cpus.client, interface.client),
    }


def _readings(path: Path) -> tuple[int, list[Reading]]:
    """Return the clock ticks per second, and the readings; none where nothing was recorded."""
    return host_recording.read(path) if path.exists() else (1, [])


def _during(
    window: Window,
    scrapes: list[node_exporter.Sample],
    host: _Host,
    cores_path: Path,
    processes_path: Path,
) -> tuple[HostTelemetry, Recording | None]:
    """Return a host's telemetry in the window, with its hardware where processes were recorded, and
    that recording."""
    ticks, readings = _readings(cores_path)
    recorded = host_recording.counters(ticks, readings, host.cpus, host.interface)
    start, end, interface = window.start, window.end, host.interface
    telemetry = node_exporter.summarise(scrapes, host.cpus, start, end, interface, recorded)
    telemetry = replace(
        telemetry,
        exact=telemetry.exact if cores_path.exists() else None,
        drops=host_recording.drops(readings, start, end, host.cpus, interface),
        link_losses=host_recording.link_losses(readings, start, end, interface),
        memory_pressure=host_recording.pressure(readings, start, end, "memory"),
        io_pressure=host_recording.pressure(readings, start, end, "io"),
        energy_j=host_recording.joules(readings, start, end),
    )
    if not processes_path.exists():
        return telemetry, None
    recording = processes.read(processes_path)
    frequency, throttled = processes.hardware(recording, window, host.cpus)
    return replace(telemetry, frequency=frequency, throttled=throttled), recording
