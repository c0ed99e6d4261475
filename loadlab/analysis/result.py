"""Build result.json of one repetition from its raw files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.analysis import disturbance, response_time
from loadlab.analysis.due import over_due, withheld
from loadlab.analysis.validity import ClientEvidence, LoadEvidence, judge, judge_together
from loadlab.core import documents
from loadlab.core.errors import ResultError
from loadlab.core.model import (
    Calibration,
    ClientLoad,
    ErrorCounts,
    GeneratorRun,
    HostTelemetry,
    Latency,
    Load,
    Reason,
    RepetitionSetup,
    ResponseTime,
    Result,
    Telemetry,
    Thresholds,
    Validity,
)
from loadlab.core.run_dir import (
    CELL,
    COUNTERS,
    ERROR,
    PROFILE,
    PROFILE_LOG,
    RUN,
    ClientDir,
    RepetitionDir,
)
from loadlab.generators import merge, registry
from loadlab.generators.generator import Answer
from loadlab.generators.measurement import Measurement
from loadlab.stats import histograms
from loadlab.stats.histograms import Histogram
from loadlab.telemetry import host, node_exporter, processes, pyspy

_STUB_STATUS = re.compile(
    r"Active connections: \d+ \nserver accepts handled requests\n \d+ \d+ (\d+) \n"
    r"Reading: \d+ Writing: \d+ Waiting: \d+ \n"
)


def build(rep_dir: Path, limits: Thresholds, *calibrations: Calibration | None) -> Result:
    """Return the result of a repetition's directory.

    ``calibrations``: of each client, in the order of cell.json; None for a client without one.

    A raw file that cannot be read or understood, or the controller's error.txt, gives a void result
    with `error` and without numbers. Raises ResultError only where cell.json is absent or not
    understood: such a result could not be identified.
    """
    setup = documents.read(RepetitionDir(rep_dir).cell, RepetitionSetup)
    if setup.cell.load.timeout_s is not None:
        limits = replace(limits, timeout_s=setup.cell.load.timeout_s)
    try:
        return _measured(rep_dir, setup, limits, calibrations)
    except (ValueError, LookupError, TypeError, OSError) as error:
        # Every error of this package is a ValueError; a LookupError or TypeError is a raw file that
        # lacks something. The text of an OSError would contain a path.
        text = (
            f"{type(error).__name__}: {error}"
            if isinstance(error, LookupError | TypeError)
            else str(error)
        )
        if isinstance(error, OSError):
            text = f"{error.strerror}: {Path(str(error.filename)).name}"
        return _failed(setup, text)


def _failed(setup: RepetitionSetup, error: str) -> Result:
    return Result(
        cell_id=setup.cell_id,
        repetition=setup.repetition,
        block=setup.block,
        purpose=setup.purpose,
        base=setup.base,
        cell=setup.cell,
        server=setup.server,
        input_hashes=setup.input_hashes,
        error=error,
        requests=None,
        responses=None,
        ok=None,
        rate_achieved=None,
        goodput=None,
        errors=None,
        aborted=None,
        scheduled=None,
        unsent=None,
        duration_s=None,
        nginx_requests=None,
        mean_service_time_us=None,
        latency_us=None,
        latency_basis=None,
        send_delay_us=None,
        histogram=None,
        per_second=None,
        telemetry=None,
        validity=Validity(valid=False, reasons=[Reason(code="failed", value=error)], findings=[]),
        started=None,
        finished=None,
        raw_sha256={},
    )


def keep(rep_dir: Path, limits: Thresholds, keep_requests: bool) -> None:
    """Write, before the result, what is kept of a generator's file of requests.

    That is its reduction or, with ``keep_requests``, the whole of it, compressed. The result is
    derived from it and has its hash. A file that cannot be reduced stays; the result then says why.
    """
    repetition = RepetitionDir(rep_dir)
    for folder, alone in parts(rep_dir, documents.read(repetition.cell, RepetitionSetup)):
        load = alone.cell.load
        generator = registry.GENERATORS.get(load.generator)
        if generator and generator.keep:
            with suppress(ValueError):
                generator.keep(folder.path, load, limits, keep_requests)


def discard(rep_dir: Path, limits: Thresholds) -> None:
    """Remove a generator's file of requests, once result.json exists.

    Where the repetition failed the file is evidence: the whole of it is kept, compressed.
    """
    repetition = RepetitionDir(rep_dir)
    for folder, alone in parts(rep_dir, documents.read(repetition.cell, RepetitionSetup)):
        load = alone.cell.load
        generator = registry.GENERATORS.get(load.generator)
        if generator and generator.keep and generator.discard:
            if documents.read(repetition.result, Result).error is not None:
                generator.keep(folder.path, load, limits, True)
            generator.discard(folder.path)


@dataclass(frozen=True)
class _Part:
    """The load of one client and its results; the client is a cell's only one, or one of several.

    - name: the client's folder; setup: the repetition's, with this client's share of the load
    - counters: nginx's requests before and after, None where nginx is not used
    - server, client: telemetry of each host during this client's load
    - window: the load by the server's clock
    - started, finished: unix seconds of the client's clock
    - clock_offset_s: the client's clock minus the controller's
    - raw_sha256: of its own raw files, by name below the repetition
    """

    name: str
    setup: RepetitionSetup
    measurement: Measurement
    counters: tuple[int, int] | None
    server: HostTelemetry
    client: HostTelemetry
    window: processes.Window
    started: float
    finished: float
    clock_offset_s: float
    exit_code: int
    raw_sha256: dict[str, str]


def parts(rep_dir: Path, setup: RepetitionSetup) -> list[tuple[ClientDir, RepetitionSetup]]:
    """Return (folder of raw files, cell.json as if for that client alone) of each client.

    The folder of an only client is the repetition's.
    """
    repetition = RepetitionDir(rep_dir)
    if setup.clients is None:
        return [(repetition, setup)]
    found = []
    for one in setup.clients:
        load = replace(setup.cell.load, clients=None, rate=one.rate, connections=one.connections)
        alone = replace(
            setup,
            cell=replace(setup.cell, load=load),
            cpus=setup.cpus and replace(setup.cpus, client=one.cpus),
            interface=setup.interface and replace(setup.interface, client=one.interface),
        )
        found.append((repetition.client(one.name), alone))
    return found


def _measured(
    rep_dir: Path,
    setup: RepetitionSetup,
    limits: Thresholds,
    calibrations: Sequence[Calibration | None],
) -> Result:
    repetition = RepetitionDir(rep_dir)
    _refuse_failed(repetition)
    recording = repetition.server_telemetry

    # Read once, and only after a client's own files.
    @cache
    def server() -> list[node_exporter.Sample]:
        return node_exporter.read(_there(recording))

    offered = [
        _part(rep_dir, folder, alone, limits, server) for folder, alone in parts(rep_dir, setup)
    ]
    evidence = [
        ClientEvidence(
            measurement=one.measurement,
            cell=one.setup.cell,
            server=one.server,
            limits=limits,
            client=one.client,
            calibration=calibration,
            exit_code=one.exit_code,
            # Of several clients nginx counts the sum.
            nginx_requests=_counted(offered) if len(offered) == 1 else None,
        )
        for one, calibration in zip(offered, calibrations, strict=True)
    ]
    validities = [judge(one) for one in evidence]
    loads = [one.setup.cell.load for one in offered]
    waits = [
        response_time.summarise(one.measurement.waited, load.rate, limits)
        for one, load in zip(offered, loads, strict=True)
    ]
    censored = [
        response_time.censored(one.measurement, load, limits)
        for one, load in zip(offered, loads, strict=True)
    ]
    raw = {CELL, recording.name} | processes.raw(rep_dir)
    profile = None
    if setup.purpose == "py_spy":
        profile = pyspy.reduce(rep_dir)
        raw |= {PROFILE, PROFILE_LOG}
    hashes = _hashes(rep_dir, raw)
    for one in offered:
        hashes |= one.raw_sha256
    first = offered[0]
    if len(offered) == 1:
        found = _result(setup, first.measurement, validities[0], waits[0], censored[0], limits)
        found = replace(found, started=first.started, finished=first.finished)
    else:
        whole = LoadEvidence(
            measurement=merge.merge([one.measurement for one in offered]),
            cell=setup.cell,
            server=first.server,
            limits=limits,
            nginx_requests=_counted(offered),
        )
        found = _together(setup, offered, whole, validities, waits, censored, calibrations)
    return replace(
        found,
        nginx_requests=_counted(offered),
        py_spy=profile,
        telemetry=Telemetry(
            server=disturbance.marked(_with_processes(rep_dir, first), limits),
            # Of several clients, the one closest to its limit.
            client=disturbance.marked(
                max(offered, key=lambda one: one.client.cpu_busy).client, limits
            ),
        ),
        raw_sha256=dict(sorted(hashes.items())),
    )


def _result(
    setup: RepetitionSetup,
    measurement: Measurement,
    validity: Validity,
    waited: ResponseTime | None,
    censored: Histogram,
    limits: Thresholds,
) -> Result:
    """Return the result with what comes from a load."""
    lateness = measurement.lateness
    return replace(
        _failed(setup, ""),
        error=None,
        requests=measurement.requests,
        responses=measurement.responses,
        ok=measurement.ok,
        rate_achieved=measurement.rate_achieved,
        goodput=measurement.goodput,
        errors=msgspec.convert(measurement.errors, ErrorCounts),
        aborted=measurement.aborted,
        scheduled=measurement.scheduled,
        unsent=measurement.unsent,
        duration_s=measurement.duration_s,
        mean_service_time_us=measurement.mean_service_us,
        latency_us=_latency(measurement, censored, limits),
        latency_basis="scheduled" if measurement.latency_from == "intended" else "sent",
        send_delay_us=msgspec.convert(measurement.send_delay_us, Latency | None),
        late=None if lateness is None or lateness.hidden else lateness.late,
        histogram=response_time.encoded(measurement.histogram),
        censored=response_time.encoded(censored) if censored.total_count else None,
        per_second=measurement.per_second,
        client=measurement.client,
        response_time=waited,
        validity=validity,
    )


def _latency(measurement: Measurement, censored: Histogram, limits: Thresholds) -> Latency:
    """Return the latencies over all requests that were due, without withheld percentiles."""
    lateness, scheduled = measurement.lateness, measurement.scheduled
    late = lateness.late / scheduled if lateness and scheduled else 0.0
    return over_due(
        measurement.latency_us,
        measurement.histogram,
        censored,
        withheld(late, limits.late_max),
    )


def _with_processes(rep_dir: Path, part: _Part) -> HostTelemetry:
    """Return the server's telemetry with its processes and database, where they were recorded."""
    found, database = processes.server(rep_dir, part.window, part.server.cores)
    return replace(part.server, processes=found, database=database)


def _together(
    setup: RepetitionSetup,
    offered: Sequence[_Part],
    whole: LoadEvidence,
    validities: Sequence[Validity],
    waits: Sequence[ResponseTime | None],
    censored: Sequence[Histogram],
    calibrations: Sequence[Calibration | None],
) -> Result:
    """Return the merged result of several clients. Times are by the first's clock."""
    first = offered[0]
    validity = judge_together(
        {one.name: own for one, own in zip(offered, validities, strict=True)},
        whole,
        [one.client for one in offered],
        calibrations,
        merge.spread_s([(one.started, one.clock_offset_s) for one in offered]),
    )
    return replace(
        _result(
            setup,
            whole.measurement,
            validity,
            response_time.add_up(waits),
            histograms.merge(censored),
            whole.limits,
        ),
        started=first.started,
        finished=max(one.finished - one.clock_offset_s for one in offered) + first.clock_offset_s,
        clients=[
            _client(one, own, _latency(one.measurement, waiting, whole.limits))
            for one, own, waiting in zip(offered, validities, censored, strict=True)
        ],
    )


def _client(part: _Part, validity: Validity, latency: Latency) -> ClientLoad:
    load, measurement = part.setup.cell.load, part.measurement
    return ClientLoad(
        name=part.name,
        rate=load.rate,
        connections=load.connections,
        requests=measurement.requests,
        responses=measurement.responses,
        rate_achieved=measurement.rate_achieved,
        errors=msgspec.convert(measurement.errors, ErrorCounts),
        unsent=measurement.unsent,
        latency_us=latency,
        telemetry=part.client,
        validity=validity,
        started=part.started,
        clock_offset_s=part.clock_offset_s,
    )


def _part(
    rep_dir: Path,
    folder: ClientDir,
    setup: RepetitionSetup,
    limits: Thresholds,
    server: Callable[[], list[node_exporter.Sample]],
) -> _Part:
    """Return one client's part of a repetition, from the raw files in its folder.

    ``server``: returns the server's scrapes. Raises ResultError, with the client's name if there
    are several.
    """
    if folder.path == rep_dir:
        return _read(rep_dir, folder, setup, limits, server)
    try:
        _refuse_failed(folder)
        return _read(rep_dir, folder, setup, limits, server)
    except ValueError as problem:
        raise ResultError(f"{folder.path.name}: {problem}") from problem


def _refuse_failed(folder: ClientDir) -> None:
    """Raise ResultError with the error that a script or the controller wrote down."""
    if folder.error.exists():
        raise ResultError(documents.text(folder.error).strip() or f"{ERROR} is empty")


def _read(
    rep_dir: Path,
    folder: ClientDir,
    setup: RepetitionSetup,
    limits: Thresholds,
    server: Callable[[], list[node_exporter.Sample]],
) -> _Part:
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
        folder.path, cell.load, Answer(setup.body_bytes, setup.wire_bytes), limits
    )
    raw |= {generator.output, *beside}
    started, end, finished = _times(run, cell.load, measurement)
    scrapes, own_scrapes = server(), node_exporter.read(_there(recording))
    offset_s = node_exporter.clock_offset(own_scrapes)
    # The server's clock relative to the client's, by way of the controller's.
    ahead_s = node_exporter.clock_offset(scrapes) - offset_s
    # Several clients wait for each other after the warm-up.
    warmed = cell.load.warmup_s > 0 and folder.path == rep_dir
    own_window = processes.Window(started, end, warmed)
    window = processes.Window(started + ahead_s, end + ahead_s, warmed)
    counters = None
    if cell.front == "none":
        measurement.findings.append(Reason(code="uncounted"))
    else:
        before, after = map(_stub_requests, folder.counters)
        counters = before, after
        raw |= set(COUNTERS)
    raw |= host.raw(folder)
    hashes = _hashes(folder.path, raw)
    below = "" if folder.path == rep_dir else f"{folder.path.relative_to(rep_dir).as_posix()}/"
    return _Part(
        name=folder.path.name,
        setup=setup,
        measurement=measurement,
        counters=counters,
        server=host.server(RepetitionDir(rep_dir), scrapes, setup, window),
        client=host.client(folder, own_scrapes, setup, own_window),
        window=window,
        started=started,
        finished=finished,
        clock_offset_s=offset_s,
        exit_code=run.exit_code,
        raw_sha256={f"{below}{name}": sha256 for name, sha256 in hashes.items()},
    )


def _there(path: Path) -> Path:
    if not path.exists():
        raise ResultError(f"{path.name} is not there")
    return path


def _hashes(folder: Path, names: set[str]) -> dict[str, str]:
    return {name: documents.digest_of(folder / name) for name in names}


def _counted(offered: Sequence[_Part]) -> int | None:
    """Return the requests that nginx counted from the last page before the load to the last after
    it.

    Each page fetched after the load counts itself, so these are subtracted. None without nginx.
    """
    counters = [one.counters for one in offered if one.counters is not None]
    if not counters:
        return None
    last_before = max(before for before, _ in counters)
    last_after = max(after for _, after in counters)
    return last_after - last_before - len(counters)


def _stub_requests(path: Path) -> int:
    page = documents.text(path)
    match = _STUB_STATUS.fullmatch(page)
    if match is None:
        raise ResultError(f"{path.name} is no stub_status page: {page[:120]!r}")
    return int(match[1])


def _times(run: GeneratorRun, load: Load, measurement: Measurement) -> tuple[float, float, float]:
    """Return the start of the load, the end for telemetry, and the finish.

    All are unix seconds of the client's clock. Telemetry ends with the duration asked, not at the
    finish: while the last answers arrive, a full machine would look idle. A batch has no deadline,
    and its client knows the start better than its process.
    """
    if measurement.span:
        started, finished = measurement.span
        return started, finished, finished
    end = run.finished
    if load.duration_s is not None:
        end = min(end, run.started + load.duration_s)
    return run.started, end, run.finished
