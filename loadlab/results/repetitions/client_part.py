"""The load of one client of a repetition, read from its raw files."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.generators.generator import Answer
from loadlab.generators.measurement import Measurement
from loadlab.model import GeneratorRun, HostTelemetry, Load, Reason, RepetitionSetup
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.methods import ROOT
from loadlab.run.run_dir import CELL, COUNTERS, ERROR, RUN, ClientDir, RepetitionDir
from loadlab.stacks.reverse_proxies import reverse_proxy
from loadlab.telemetry import host_telemetry, node_exporter
from loadlab.telemetry.recordings import Window


@dataclass(frozen=True)
class ClientPart:
    """The load of one client, a cell's only one or one of several, and its results."""

    name: str  #: The client's folder.
    setup: RepetitionSetup  #: The repetition's, with this client's share of the load.
    measurement: Measurement
    #: The reverse proxy's requests before and after, None where none counts.
    counters: tuple[int, int] | None
    #: server, client: telemetry of each host during this client's load.
    server: HostTelemetry
    client: HostTelemetry
    window: Window  #: The load by the server's clock.
    #: started, finished: unix seconds of the client's clock.
    started: float
    finished: float
    clock_offset_s: float  #: The client's clock minus the controller's.
    exit_code: int
    raw_sha256: dict[str, str]  #: Of its own raw files, by name below the repetition.


def parts(rep_dir: Path, setup: RepetitionSetup) -> list[tuple[ClientDir, RepetitionSetup]]:
    """Return (folder of raw files, cell.json as if for that client alone) of each client.

    The folder of an only client is the repetition's.
    """
    repetition = RepetitionDir(rep_dir)
    if setup.clients is None:
        return [(repetition, setup)]
    shares = []
    for client in setup.clients:
        load = replace(
            setup.cell.load, clients=None, rate=client.rate, connections=client.connections
        )
        alone = replace(
            setup,
            cell=replace(setup.cell, load=load),
            cpus=setup.cpus and replace(setup.cpus, client=client.cpus),
            interface=setup.interface and replace(setup.interface, client=client.interface),
        )
        shares.append((repetition.client(client.name), alone))
    return shares


def read(
    rep_dir: Path,
    folder: ClientDir,
    setup: RepetitionSetup,
    thresholds: Thresholds,
    server: Callable[[], list[node_exporter.Sample]],
) -> ClientPart:
    """Return one client's part of a repetition, from the raw files in its folder.

    ``server``: returns the server's scrapes. Raises ResultError, with the client's name if there
    are several.
    """
    if folder.path == rep_dir:
        return _read(rep_dir, folder, setup, thresholds, server)
    try:
        refuse_failed(folder)
        return _read(rep_dir, folder, setup, thresholds, server)
    except ValueError as problem:
        raise ResultError(f"{folder.path.name}: {problem}") from problem


def refuse_failed(folder: ClientDir) -> None:
    """Raise ResultError with the error that a script or the controller wrote down."""
    if folder.error.exists():
        raise ResultError(documents.text(folder.error).strip() or f"{ERROR} is empty")


def _read(
    rep_dir: Path,
    folder: ClientDir,
    setup: RepetitionSetup,
    thresholds: Thresholds,
    server: Callable[[], list[node_exporter.Sample]],
) -> ClientPart:
    if setup.cpus is None or setup.interface is None:
        raise ResultError(f"{CELL} has no cpus or no interface: no load was offered")
    cell, run = setup.cell, documents.read(folder.run, GeneratorRun)
    recording = folder.telemetry
    raw = {RUN, recording.name}
    generator = registry.get(cell.load.generator)
    if run.exit_code != 0 and not (folder.path / generator.output).exists():
        raise ResultError(
            f"the generator ended with exit code {run.exit_code} and left no {generator.output}"
        )
    measurement, beside = generator.measure(
        folder.path, cell.load, Answer(setup.body_bytes, setup.wire_bytes, cell.kinds), thresholds
    )
    raw |= {generator.output, *beside}
    started, finished = measurement.span or (run.started, run.finished)
    own_scrapes = node_exporter.steady(node_exporter.read(there(recording)), started)
    end, finished = _ends(started, finished, cell.load, measurement, own_scrapes)
    scrapes = node_exporter.steady(server())
    offset_s = node_exporter.clock_offset(own_scrapes)
    # The server's clock relative to the client's, by way of the controller's.
    ahead_s = node_exporter.clock_offset(scrapes) - offset_s
    # Several clients wait for each other after the warm-up.
    warmed = cell.load.warmup_s > 0 and folder.path == rep_dir
    own_window = Window(started, end, warmed, finished)
    window = Window(started + ahead_s, end + ahead_s, warmed, finished + ahead_s)
    counters = None
    pages = None if cell.direct else reverse_proxy(ROOT, cell.reverse_proxy).counters
    if pages is None:
        measurement.findings.append(Reason(code="uncounted"))
    else:
        before, after = (_requests(path, pages.requests) for path in folder.counters)
        counters = before, after
        raw |= set(COUNTERS)
    raw |= host_telemetry.raw(folder)
    below = "" if folder.path == rep_dir else f"{folder.path.relative_to(rep_dir).as_posix()}/"
    return ClientPart(
        name=folder.path.name,
        setup=setup,
        measurement=measurement,
        counters=counters,
        server=host_telemetry.server(RepetitionDir(rep_dir), scrapes, setup, window),
        client=_working(
            host_telemetry.client(folder, own_scrapes, setup, own_window),
            measurement.polling_s,
            end - started,
        ),
        window=window,
        started=started,
        finished=finished,
        clock_offset_s=offset_s,
        exit_code=run.exit_code,
        raw_sha256={f"{below}{name}": sha256 for name, sha256 in hashes(folder.path, raw).items()},
    )


def _working(client: HostTelemetry, polling_s: Sequence[float], seconds: float) -> HostTelemetry:
    """Return a client's telemetry without the CPU time in which its generator looked for work.

    ``polling_s``: of each second of the load, which lasted ``seconds``.
    """
    if not polling_s:
        return client

    def less(busy: float, polled: float) -> float:
        return max(0.0, busy - polled / client.cores)

    series = client.per_second
    if series is not None:
        polled = [polling_s[min(int(max(t - 0.5, 0)), len(polling_s) - 1)] for t in series.t]
        working = [less(*pair) for pair in zip(series.cpu_busy, polled, strict=True)]
        series = replace(series, cpu_busy=working)
    part = sum(polling_s) / seconds
    return replace(
        client, cpu_busy=less(client.cpu_busy, part), polling=part / client.cores, per_second=series
    )


def there(path: Path) -> Path:
    """Return the path of a raw file. Raises ResultError where it is absent."""
    if not path.exists():
        raise ResultError(f"{path.name} is not there")
    return path


def hashes(folder: Path, names: set[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these files of a folder, by name."""
    return {name: documents.digest_of(folder / name) for name in names}


def counted(offered: Sequence[ClientPart]) -> int | None:
    """Return the requests that the reverse proxy counted from the last page before the load to the
    last after it.

    Each page fetched after the load counts itself, so these are subtracted. None where none counts.
    """
    counters = [part.counters for part in offered if part.counters is not None]
    if not counters:
        return None
    last_before = max(before for before, _ in counters)
    last_after = max(after for _, after in counters)
    return last_after - last_before - len(counters)


def _requests(path: Path, form: str) -> int:
    """Return the count of a page; ``form``: regular expression of it."""
    page = documents.text(path)
    match = re.fullmatch(form, page)
    if match is None:
        raise ResultError(f"{path.name} is no page of counters: {page[:120]!r}")
    return int(match[1])


def _ends(
    started: float,
    finished: float,
    load: Load,
    measurement: Measurement,
    scrapes: Sequence[node_exporter.Sample],
) -> tuple[float, float]:
    """Return the end for telemetry, and the finish.

    All are unix seconds of the client's clock, of which ``scrapes`` are. Telemetry ends with the
    duration asked, not at the finish: while the last answers arrive, a full machine would look
    idle. A batch has no deadline. A generator knows its start better than its process.
    """
    if any(scrape.set_s for scrape in scrapes):
        # As if nobody had set it. wrk measures its duration by this clock too.
        finished = started + max(measurement.duration_s, load.duration_s or 0.0)
    return min(finished, started + (load.duration_s or math.inf)), finished
