"""Build result.json of one repetition from its raw files."""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replace_evidence
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.generators import merge, registry
from loadlab.generators.measurement import Measurement
from loadlab.model import (
    Calibration,
    ClientLoad,
    ErrorCounts,
    HostTelemetry,
    KindLoad,
    Latency,
    Load,
    OwnPart,
    Reason,
    RepetitionSetup,
    ResponseTime,
    Result,
    Telemetry,
    Validity,
)
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions import client_part, queue, response_time, stages, visits
from loadlab.results.repetitions.client_part import ClientPart
from loadlab.results.repetitions.latencies_due import exceeding, over_due, own_part, withheld
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


def build(rep_dir: Path, thresholds: Thresholds, *calibrations: Calibration | None) -> Result:
    """Return the result of a repetition's directory.

    ``calibrations``: of each client, in the order of cell.json; None for a client without one.

    A raw file that cannot be read or understood, or the controller's error.txt, gives a void result
    with `error` and without numbers. So does a bug of the lab, whose error says so and where, as
    the other cells of the run can be measured all the same. Raises ResultError only where cell.json
    is absent or not understood: such a result could not be identified.
    """
    setup = documents.read(RepetitionDir(rep_dir).cell, RepetitionSetup)
    if setup.cell.load.timeout_s is not None:
        thresholds = replace(thresholds, timeout_s=setup.cell.load.timeout_s)
    try:
        return _measured(rep_dir, setup, thresholds, calibrations)
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
    return Result(
        cell_id=setup.cell_id,
        repetition=setup.repetition,
        block=setup.block,
        blocks=setup.blocks,
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
        reverse_proxy_requests=None,
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


def keep(rep_dir: Path, thresholds: Thresholds) -> None:
    """Write, before the result, what is kept of a generator's file of requests.

    The result is derived from it and has its hash. A file that cannot be reduced stays; the result
    then says why.
    """
    repetition = RepetitionDir(rep_dir)
    for folder, alone in client_part.parts(
        rep_dir, documents.read(repetition.cell, RepetitionSetup)
    ):
        load = alone.cell.load
        generator = registry.GENERATORS.get(load.generator)
        if generator and generator.keep:
            with suppress(ValueError):
                generator.keep(folder.path, load, thresholds, False)


def discard(rep_dir: Path, thresholds: Thresholds) -> None:
    """Remove a generator's file of requests, once result.json exists.

    Where the repetition failed the file is evidence: the whole of it is kept, compressed.
    """
    repetition = RepetitionDir(rep_dir)
    for folder, alone in client_part.parts(
        rep_dir, documents.read(repetition.cell, RepetitionSetup)
    ):
        load = alone.cell.load
        generator = registry.GENERATORS.get(load.generator)
        if generator and generator.keep and generator.discard:
            if documents.read(repetition.result, Result).error is not None:
                generator.keep(folder.path, load, thresholds, True)
            generator.discard(folder.path)


def _measured(
    rep_dir: Path,
    setup: RepetitionSetup,
    thresholds: Thresholds,
    calibrations: Sequence[Calibration | None],
) -> Result:
    repetition = RepetitionDir(rep_dir)
    client_part.refuse_failed(repetition)
    recording = repetition.server_telemetry

    # Read once, and only after a client's own files.
    @cache
    def server() -> list[node_exporter.Sample]:
        return node_exporter.read(client_part.there(recording))

    offered = [
        client_part.read(rep_dir, folder, alone, thresholds, server)
        for folder, alone in client_part.parts(rep_dir, setup)
    ]
    cells = [visits.in_requests(part.setup.cell, part.measurement) for part in offered]
    loads = [cell.load for cell in cells]
    censored = [
        response_time.censored(part.measurement, load, thresholds)
        for part, load in zip(offered, loads, strict=True)
    ]
    parts = [
        _own(part.measurement, waiting) for part, waiting in zip(offered, censored, strict=True)
    ]
    evidence = [
        ClientEvidence(
            measurement=part.measurement,
            cell=cell,
            server=part.server,
            thresholds=thresholds,
            client=part.client,
            calibration=calibration,
            exit_code=part.exit_code,
            emulated=setup.emulated or [],
            # Of several clients the reverse proxy counts the sum.
            reverse_proxy_requests=client_part.counted(offered) if len(offered) == 1 else None,
            latency=latency,
            own=own,
            censored_s=_total_s(waiting),
        )
        for part, cell, calibration, (latency, own), waiting in zip(
            offered, cells, calibrations, parts, censored, strict=True
        )
    ]
    validities = [judge(client) for client in evidence]
    waits = [
        response_time.summarise(part.measurement.waited, load.rate, thresholds)
        for part, load in zip(offered, loads, strict=True)
    ]
    raw = {CELL, recording.name} | processes.raw(rep_dir)
    profile = trace = None
    if setup.purpose == "py_spy":
        profile = pyspy.reduce(rep_dir)
        raw |= {PROFILE, PROFILE_LOG}
        if profile.gil_fraction is not None:
            raw.add(LOCK_PROFILE)
    elif setup.purpose == "trace":
        trace = kernel_trace.reduce(rep_dir, running(setup.cell.reverse_proxy)[-1])
        raw |= kernel_trace.RAW
    hashes = client_part.hashes(rep_dir, raw)
    for part in offered:
        hashes |= part.raw_sha256
    first = offered[0]
    if len(offered) == 1:
        result = _result(setup, first.measurement, validities[0], waits[0], censored[0], thresholds)
        result = replace(result, started=first.started, finished=first.finished)
        merged = first.measurement
    else:
        merged = merge.merge([part.measurement for part in offered])
        whole = LoadEvidence(
            measurement=merged,
            cell=visits.in_requests(setup.cell, merged),
            server=first.server,
            thresholds=thresholds,
            reverse_proxy_requests=client_part.counted(offered),
        )
        together = histograms.merge(censored)
        latency, own = _own(whole.measurement, together)
        whole = replace_evidence(whole, latency=latency, own=own, censored_s=_total_s(together))
        result = _together(setup, offered, whole, validities, waits, censored, calibrations)
    disturbed = _disturbed(offered, thresholds)
    kinds = _kinds(offered, merged, setup.cell.kinds, thresholds) if merged.kinds else None
    return replace(
        result,
        reverse_proxy_requests=client_part.counted(offered),
        latency_us=result.latency_us and _without(result.latency_us, disturbed),
        kinds=kinds
        and [replace(kind, latency_us=_without(kind.latency_us, disturbed)) for kind in kinds],
        py_spy=profile,
        trace=trace,
        telemetry=Telemetry(
            server=disturbance.marked(_with_processes(rep_dir, first), thresholds),
            # Of several clients, the one closest to its limit.
            client=disturbance.marked(
                max(offered, key=lambda part: part.client.cpu_busy).client, thresholds
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
    thresholds: Thresholds,
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
        saturated=measurement.saturated,
        errors=msgspec.convert(measurement.errors, ErrorCounts),
        aborted=measurement.aborted,
        scheduled=measurement.scheduled,
        unsent=measurement.unsent,
        duration_s=measurement.duration_s,
        mean_service_time_us=measurement.mean_service_us,
        latency_us=_latency(measurement, censored, thresholds),
        latency_basis="scheduled" if measurement.latency_from == "intended" else "sent",
        send_delay_us=msgspec.convert(measurement.send_delay_us, Latency | None),
        own_us=_own(measurement, censored)[1],
        shape=schedule_rules.shape(measurement, thresholds),
        visits=visits.of_load(measurement, setup.cell.load),
        queue=queue.of_load(measurement, setup.cell.load),
        stages=stages.of_load(measurement, setup.cell.load) or None,
        recovery=stages.recovery(measurement, setup.cell.load, thresholds),
        opened=measurement.opened,
        stops=measurement.stops,
        late=None
        if lateness is None or lateness.hidden or measurement.ideal is not None
        else lateness.late,
        histogram=response_time.encoded(measurement.histogram),
        ideal=None if measurement.ideal is None else response_time.encoded(measurement.ideal),
        censored=response_time.encoded(censored) if censored.total_count else None,
        per_second=measurement.per_second,
        client=measurement.client,
        response_time=waited,
        validity=validity,
    )


def _kinds(
    offered: Sequence[ClientPart],
    merged: Measurement,
    weights: Mapping[str, int],
    thresholds: Thresholds,
) -> list[KindLoad]:
    """Return what came of each kind of request of a mix; ``merged``: of all clients."""

    def part(load: Load, weight: int) -> Load:
        return replace(load, rate=load.rate and load.rate * weight / sum(weights.values()))

    kinds = []
    for name, weight in weights.items():
        own = merged.kinds[name]
        censored = histograms.merge(
            response_time.censored(
                client.measurement.kinds[name],
                part(visits.in_requests(client.setup.cell, client.measurement).load, weight),
                thresholds,
            )
            for client in offered
        )
        kinds.append(
            KindLoad(
                name=name,
                weight=weight,
                requests=own.requests,
                responses=own.responses,
                ok=own.ok,
                scheduled=own.scheduled or 0,
                unsent=own.unsent or 0,
                goodput=own.goodput,
                errors=msgspec.convert(own.errors, ErrorCounts),
                latency_us=_latency(own, censored, thresholds),
                own_us=_own(own, censored)[1],
                histogram=response_time.encoded(own.histogram),
                ideal=None if own.ideal is None else response_time.encoded(own.ideal),
                censored=response_time.encoded(censored) if censored.total_count else None,
            )
        )
    return kinds


def _latency(measurement: Measurement, censored: Histogram, thresholds: Thresholds) -> Latency:
    """Return the latencies over all requests that were due, without withheld percentiles."""
    lateness, scheduled = measurement.lateness, measurement.scheduled
    late = lateness.late / scheduled if lateness and scheduled else 0.0
    names = withheld(late, thresholds.late_max)
    whole, own = _own(measurement, censored)
    if own is not None:
        names += exceeding(whole, own, thresholds)
    return over_due(measurement.latency_us, measurement.histogram, censored, names)


def _disturbed(offered: Sequence[ClientPart], thresholds: Thresholds) -> list[str]:
    """Return the percentiles that others on one of the hosts may have made."""
    hosts = {"server": offered[0].server, **{part.name: part.client for part in offered}}
    return disturbance.tail(hosts, thresholds).withheld


def _without(latency: Latency, names: Sequence[str]) -> Latency:
    """Return latencies with these percentiles withheld."""
    at_least = [name for name in latency.at_least if name not in names]
    return replace(latency, **dict.fromkeys(names), at_least=at_least)


def _own(measurement: Measurement, censored: Histogram) -> tuple[Latency, OwnPart | None]:
    """Return the latencies over all requests that were due, nothing withheld, and the generator's
    part of them; None where it does not report its part."""
    latency = over_due(measurement.latency_us, measurement.histogram, censored, [])
    ideal = measurement.ideal
    return latency, None if ideal is None else own_part(latency, ideal, censored)


def _total_s(waits: Histogram) -> float:
    """Return the sum of the waits, seconds."""
    return (histograms.summary(waits)["mean"] or 0.0) * int(waits.total_count) / 1e6


def _with_processes(rep_dir: Path, part: ClientPart) -> HostTelemetry:
    """Return the server's telemetry with its processes and database, where they were recorded."""
    used, database = services.server(
        rep_dir, part.window, part.server.cores, host_telemetry.served(part.setup)
    )
    return replace(part.server, processes=used, database=database)


def _together(
    setup: RepetitionSetup,
    offered: Sequence[ClientPart],
    whole: LoadEvidence,
    validities: Sequence[Validity],
    waits: Sequence[ResponseTime | None],
    censored: Sequence[Histogram],
    calibrations: Sequence[Calibration | None],
) -> Result:
    """Return the merged result of several clients. Times are by the first's clock."""
    first = offered[0]
    validity = judge_together(
        {part.name: own for part, own in zip(offered, validities, strict=True)},
        whole,
        [part.client for part in offered],
        calibrations,
        merge.spread_s([(part.started, part.clock_offset_s) for part in offered]),
    )
    return replace(
        _result(
            setup,
            whole.measurement,
            validity,
            response_time.add_up(waits),
            histograms.merge(censored),
            whole.thresholds,
        ),
        started=first.started,
        finished=max(part.finished - part.clock_offset_s for part in offered)
        + first.clock_offset_s,
        clients=[
            _client(part, own, _latency(part.measurement, waiting, whole.thresholds))
            for part, own, waiting in zip(offered, validities, censored, strict=True)
        ],
    )


def _client(part: ClientPart, validity: Validity, latency: Latency) -> ClientLoad:
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
