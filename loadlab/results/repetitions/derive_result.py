"""Build result.json of one repetition from its raw files."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replace_fields
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from loadlab.generators import merge, registry
from loadlab.generators.generator import Generator
from loadlab.model import (
    Calibration,
    ClientLoad,
    HostTelemetry,
    KindLoad,
    Latency,
    Load,
    Reason,
    RepetitionSetup,
    ResponseTime,
    Result,
    Saturated,
    Telemetry,
    Validity,
)
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions import (
    bursts,
    client_part,
    knee,
    queue,
    response_time,
    stages,
    visits,
)
from loadlab.results.repetitions.client_part import ClientPart
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.validity import disturbance, schedule_rules
from loadlab.results.validity.judge_validity import judge, judge_together
from loadlab.results.validity.validity_evidence import ClientEvidence, LoadEvidence
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.run_dir import CELL, LOCK_PROFILE, PROFILE, PROFILE_LOG, RepetitionDir
from loadlab.stacks.reverse_proxies import running
from loadlab.stats import histograms
from loadlab.stats.histograms import Histogram
from loadlab.telemetry import (
    host_telemetry,
    kernel_trace,
    node_exporter,
    processes,
    pyspy,
    services,
)
from loadlab.telemetry.recordings import TelemetryError, Window

# Fields that a result has from its setup under the same names.
_IDENTITY = (
    *("cell_id", "repetition", "block", "blocks", "purpose", "base", "cell", "server"),
    "input_hashes",
)


def build(rep_dir: Path, thresholds: Thresholds, *calibrations: Calibration | None) -> Result:
    """Return the result of a repetition's directory.

    ``calibrations``: of each client, in the order of cell.json; None for a client without one.

    A raw file that cannot be read or understood or gives an impossible figure, or the controller's
    error.txt, gives a void result with `error` and without numbers. So does a bug of the lab, whose
    error says so and where, as the other cells of the run can be measured all the same. Raises
    ResultError only where cell.json is absent or not understood: such a result could not be
    identified.
    """
    setup = documents.read(RepetitionDir(rep_dir).cell, RepetitionSetup)
    if setup.cell.load.timeout_s is not None:
        thresholds = replace(thresholds, timeout_s=setup.cell.load.timeout_s)
    try:
        result = _measured(rep_dir, setup, thresholds, calibrations)
        # A figure that no document may have would end the run when the result is written.
        documents.encode(result)
        return result
    except LabError as error:
        text = str(error)
    except OSError as error:
        # Its text would contain a path.
        text = f"{error.strerror}: {Path(str(error.filename)).name}"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        places = (f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[:0:-1])
        text = (
            "a bug of the lab, please report it with this repetition's files: "
            f"{type(error).__name__}: {error} at {' in '.join(places)}"
        )
    return _failed(setup, text)


def _failed(setup: RepetitionSetup, error: str) -> Result:
    fields: dict[str, Any] = dict.fromkeys(Result.__struct_fields__)
    fields |= {name: getattr(setup, name) for name in _IDENTITY}
    reasons = [Reason(code="failed", value=error)]
    validity = Validity(valid=False, reasons=reasons, findings=[])
    return Result(**{**fields, "error": error, "validity": validity, "raw_sha256": {}})


def keep(rep_dir: Path, thresholds: Thresholds) -> None:
    """Write, before the result, what is kept of a generator's file of requests.

    The result is derived from it and has its hash. A file that cannot be reduced stays; the result
    then says why.
    """
    for folder, load, generator in _keeping(rep_dir):
        if generator.keep:
            with suppress(ValueError):
                generator.keep(folder, load, thresholds, False)


def discard(rep_dir: Path, thresholds: Thresholds) -> None:
    """Remove a generator's file of requests, once result.json exists.

    Where the repetition failed the file is evidence: the whole of it is kept, compressed.
    """
    for folder, load, generator in _keeping(rep_dir):
        if generator.keep and generator.discard:
            if documents.read(RepetitionDir(rep_dir).result, Result).error is not None:
                generator.keep(folder, load, thresholds, True)
            generator.discard(folder)


def _keeping(rep_dir: Path) -> Iterator[tuple[Path, Load, Generator]]:
    """Yield (folder, load, generator) of each client whose generator is known."""
    setup = documents.read(RepetitionDir(rep_dir).cell, RepetitionSetup)
    for folder, alone in client_part.parts(rep_dir, setup):
        load = alone.cell.load
        if generator := registry.GENERATORS.get(load.generator):
            yield folder.path, load, generator


def _measured(
    rep_dir: Path,
    setup: RepetitionSetup,
    thresholds: Thresholds,
    calibrations: Sequence[Calibration | None],
) -> Result:
    repetition = RepetitionDir(rep_dir)
    client_part.refuse_failed(repetition)

    # Read once, and only after a client's own files.
    @cache
    def server() -> list[node_exporter.Sample]:
        return node_exporter.read(client_part.there(repetition.server_telemetry))

    offered = [
        client_part.read(rep_dir, folder, alone, thresholds, server)
        for folder, alone in client_part.parts(rep_dir, setup)
    ]
    counted = client_part.counted(offered)
    cells = [visits.in_requests(part.setup.cell, part.measurement) for part in offered]
    loads = [
        DueRequests.of(part.measurement, cell.load, thresholds)
        for part, cell in zip(offered, cells, strict=True)
    ]
    validities = [
        judge(
            ClientEvidence(
                requests=own,
                cell=cell,
                server=part.server,
                client=part.client,
                calibration=calibration,
                exit_code=part.exit_code,
                emulated=setup.emulated or [],
                # Of several clients the reverse proxy counts the sum.
                reverse_proxy_requests=counted if len(offered) == 1 else None,
            )
        )
        for part, cell, own, calibration in zip(offered, cells, loads, calibrations, strict=True)
    ]
    waited = [
        response_time.summarise(part.measurement.waited, cell.load.rate, thresholds)
        for part, cell in zip(offered, cells, strict=True)
    ]
    first, disturbed = offered[0], _disturbed(offered, thresholds)
    if len(offered) == 1:
        whole = replace_fields(loads[0], disturbed=disturbed)
        result = replace(_result(setup, whole, validities[0], waited[0]), finished=first.finished)
    else:
        merged = merge.merge([part.measurement for part in offered])
        whole = DueRequests(
            merged, histograms.merge(own.waits for own in loads), thresholds, disturbed
        )
        result = _together(setup, offered, whole, loads, validities, calibrations, waited)
    return replace(
        result,
        started=first.started,
        reverse_proxy_requests=counted,
        kinds=_kinds(offered, whole, setup.cell.kinds) or None,
        saturated=_saturated(repetition, first, server),
        telemetry=Telemetry(
            server=disturbance.marked(_with_processes(rep_dir, first), thresholds),
            # Of several clients, the one closest to its limit.
            client=disturbance.marked(
                max(offered, key=lambda part: part.client.cpu_busy).client, thresholds
            ),
        ),
        **_observed(rep_dir, setup, offered),
    )


def _observed(
    rep_dir: Path, setup: RepetitionSetup, offered: Sequence[ClientPart]
) -> dict[str, Any]:
    """Return the fields on a profile and a trace, and on the files that the result is derived
    from."""
    raw = {CELL, RepetitionDir(rep_dir).server_telemetry.name} | processes.raw(rep_dir)
    fields: dict[str, Any] = {}
    if setup.purpose == "py_spy":
        profile = fields["py_spy"] = pyspy.reduce(rep_dir, setup.cell.kinds)
        raw |= {PROFILE, PROFILE_LOG}
        if profile.gil_fraction is not None:
            raw.add(LOCK_PROFILE)
    elif setup.purpose == "trace":
        fields["trace"] = kernel_trace.reduce(rep_dir, running(setup.cell.reverse_proxy)[-1])
        raw |= kernel_trace.RAW
    hashes = client_part.hashes(rep_dir, raw)
    for part in offered:
        hashes |= part.raw_sha256
    return {**fields, "raw_sha256": dict(sorted(hashes.items()))}


def _result(
    setup: RepetitionSetup, requests: DueRequests, validity: Validity, waited: ResponseTime | None
) -> Result:
    """Return the result with what comes from a load."""
    measurement, load = requests.measurement, setup.cell.load
    lateness = measurement.lateness
    has_lateness = lateness is not None and not lateness.hidden and measurement.ideal is None
    return replace(
        _failed(setup, ""),
        error=None,
        mean_service_time_us=measurement.mean_service_us,
        latency_basis="scheduled" if measurement.latency_from == "intended" else "sent",
        send_delay_us=msgspec.convert(measurement.send_delay_us, Latency | None),
        shape=schedule_rules.shape(measurement, requests.thresholds),
        visits=visits.of_load(measurement, load),
        queue=queue.of_load(measurement, load),
        stages=stages.of_load(measurement, load) or None,
        recovery=stages.recovery(measurement, load, requests.thresholds),
        knee=knee.of_load(measurement, load),
        bursts=bursts.of_load(measurement),
        late=lateness.late if lateness and has_lateness else None,
        response_time=waited,
        lane_times=response_time.of_lane(measurement, load, requests.thresholds),
        validity=validity,
        **requests.fields(Result),
    )


def _kinds(
    offered: Sequence[ClientPart], whole: DueRequests, weights: Mapping[str, int]
) -> list[KindLoad]:
    """Return what came of each kind of request of a mix."""

    def waits(client: ClientPart, name: str) -> Histogram:
        load = visits.in_requests(client.setup.cell, client.measurement).load
        rate = load.rate and load.rate * weights[name] / sum(weights.values())
        measured = client.measurement.kinds[name]
        return response_time.censored(measured, replace(load, rate=rate), whole.thresholds)

    kinds = {
        name: DueRequests(
            own,
            histograms.merge(waits(client, name) for client in offered),
            whole.thresholds,
            whole.disturbed,
        )
        for name, own in whole.measurement.kinds.items()
    }
    return [
        KindLoad(name=name, weight=weights[name], **requests.fields(KindLoad))
        for name, requests in kinds.items()
    ]


def _disturbed(offered: Sequence[ClientPart], thresholds: Thresholds) -> list[str]:
    """Return the percentiles that others on one of the hosts may have made."""
    hosts = {"server": offered[0].server, **{part.name: part.client for part in offered}}
    return disturbance.tail(hosts, thresholds).withheld


def _with_processes(rep_dir: Path, part: ClientPart) -> HostTelemetry:
    """Return the server's telemetry with its processes and database, where they were recorded."""
    used, database = services.server(
        rep_dir, part.window, part.server.cores, host_telemetry.served(part.setup)
    )
    return replace(part.server, processes=used, database=database)


def _saturated(
    repetition: RepetitionDir, part: ClientPart, scrapes: Callable[[], list[node_exporter.Sample]]
) -> Saturated | None:
    """Return what the closed loops of lanes gave, with what the server did in them."""
    own = part.measurement.saturated
    if own is None or own.started is None or own.finished is None:
        return own
    ahead_s = part.window.start - part.started
    window = Window(own.started + ahead_s, own.finished + ahead_s, warmed=False)
    steady = node_exporter.steady(scrapes())
    try:
        server = host_telemetry.closed_loops(repetition, steady, part.setup, window)
    except TelemetryError:
        # The load before has its recording, and the goodput needs none.
        return own
    return replace(own, server=server)


def _together(
    setup: RepetitionSetup,
    offered: Sequence[ClientPart],
    whole: DueRequests,
    loads: Sequence[DueRequests],
    validities: Sequence[Validity],
    calibrations: Sequence[Calibration | None],
    waited: Sequence[ResponseTime | None],
) -> Result:
    """Return the merged result of several clients. Times are by the first's clock."""
    first = offered[0]
    evidence = LoadEvidence(
        requests=whole,
        cell=visits.in_requests(setup.cell, whole.measurement),
        server=first.server,
        reverse_proxy_requests=client_part.counted(offered),
    )
    validity = judge_together(
        {part.name: own for part, own in zip(offered, validities, strict=True)},
        evidence,
        [part.client for part in offered],
        calibrations,
        merge.spread_s([(part.started, part.clock_offset_s) for part in offered]),
    )
    return replace(
        _result(setup, whole, validity, response_time.add_up(waited)),
        finished=max(part.finished - part.clock_offset_s for part in offered)
        + first.clock_offset_s,
        clients=[
            ClientLoad(
                name=part.name,
                rate=part.setup.cell.load.rate,
                connections=part.setup.cell.load.connections,
                telemetry=part.client,
                validity=own,
                started=part.started,
                clock_offset_s=part.clock_offset_s,
                **requests.fields(ClientLoad),
            )
            for part, requests, own in zip(offered, loads, validities, strict=True)
        ],
    )
