"""Derive calibration.json: the capacity of the link and of the generators."""

import re
from collections.abc import Mapping
from pathlib import Path

from loadlab.generators import registry
from loadlab.model import (
    Calibration,
    CalibrationConditions,
    CalibrationOrigin,
    Ceiling,
    ClockOffsets,
    GeneratorRun,
    Iperf3,
    Iperf3Direction,
    RepetitionSetup,
    Result,
    RoundTrip,
)
from loadlab.model.base import Json
from loadlab.plan import plan_document as plans
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions import client_part, derive_result
from loadlab.results.repetitions.latencies_due import supported
from loadlab.results.validity import disturbance
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.run_dir import (
    CEILING,
    FLOOR,
    IPERF3,
    IPERF3_SEVERAL,
    LINK,
    PING,
    CalibrationDir,
    ClientDir,
    RepetitionDir,
    RunDir,
    suffix,
)
from loadlab.telemetry import host_telemetry, iperf3, node_exporter

_PING = re.compile(r"= ([0-9.]+)/([0-9.]+)/([0-9.]+)/([0-9.]+) ms")


class CalibrationError(LabError):
    """A part of the calibration failed; the text says which."""


def round_trip(ping: str) -> RoundTrip:
    """Return the round-trip times in the last line of `ping -q`.

    Raises CalibrationError where it has no such times.
    """
    match = _PING.search(ping)
    if not match:
        raise CalibrationError(f"ping's output has no round-trip times: {ping[-200:]!r}")
    low, mean, high, mdev = (float(ms) * 1000 for ms in match.groups())
    return RoundTrip(min=low, mean=mean, max=high, mdev=mdev)


def keep(
    folder: CalibrationDir,
    number: int,
    outputs: Mapping[str, str],
    conditions: Mapping[str, Json],
    generator: str,
    now: float,
) -> Calibration:
    """Keep what the link was measured with, write calibration.json, and return it.

    ``outputs``: of iperf3 (client_to_server, server_to_client, and these with several_ before) and
    ping. ``now``: unix seconds. Raises ValueError where a file is there already, or is no
    measurement.
    """
    link = folder.part(LINK, number).path
    # The hosts' recordings may be there already.
    link.mkdir(parents=True, exist_ok=True)
    parallel = {f"several_{direction}": name for direction, name in IPERF3_SEVERAL.items()}
    names = {**IPERF3, **parallel, "ping": PING}
    for name in names.values():
        if (link / name).exists():
            raise LabError(f"{link / name} is there already: a measurement is kept.")
    for key, output in outputs.items():
        documents.write(link / names[key], output.encode(errors="backslashreplace"))
    measured = CalibrationConditions(
        run_id=folder.run_dir.run_id, measured=now, conditions=dict(conditions)
    )
    documents.write(folder.conditions(number), documents.encode(measured))
    try:
        return write(folder, number, generator)
    except ValueError as problem:
        raise LabError(f"{problem}. The raw files are kept in {folder.path}.") from None


def write(folder: CalibrationDir, number: int, generator: str) -> Calibration:
    """Write calibration.json by the thresholds that the run began with, and return it."""
    thresholds = plans.read(folder.run_dir.path).thresholds
    document = derive(folder, number, generator, thresholds)
    documents.write(folder.document, documents.encode(document))
    return document


def derive(
    folder: CalibrationDir, repetition: int, generator: str, thresholds: Thresholds
) -> Calibration:
    """Return calibration.json from calibration/{link,ceiling,floor}/rep-<n>/.

    Writes result.json of ceiling and floor and reduces their raw files. The baseline latency and
    its send_delay_us are None where only the closed loop is used. Raises CalibrationError where a
    part failed.
    """
    for name in (CEILING, FLOOR) if _has_floor(generator) else (CEILING,):
        part = folder.part(name, repetition)
        derive_result.keep(part.path, thresholds)
        built = derive_result.build(part.path, thresholds, None)
        if built.error is not None:
            raise CalibrationError(f"{part.place}: {built.error}")
        documents.write(part.result, documents.encode(built))
        derive_result.discard(part.path, thresholds)
    return _document(folder, repetition, generator, thresholds)


def generator(folder: CalibrationDir, repetition: int) -> str:
    """Return the generator that measured a calibration's baseline latency; that of the closed loop
    where none did."""
    setup = folder.part(FLOOR, repetition).cell
    if not setup.exists():
        return registry.saturating()
    return documents.read(setup, RepetitionSetup).cell.load.generator


def _has_floor(generator: str) -> bool:
    """Return whether a calibration for this generator measures a baseline latency, which needs a
    rate."""
    return registry.get(generator).mode == "constant"


def in_force(run_dir: Path, rep_dir: Path, thresholds: Thresholds) -> list[Calibration | None]:
    """Return the calibration of each client of a repetition, the last that ended before its load.

    A resumed run is calibrated again, and calibration.json is the newest, so it may be too new. An
    item is None where there was none, and where the repetition has no times and so is not judged.
    Times are of the client's clock.
    """
    setup = documents.read(RepetitionDir(rep_dir).cell, RepetitionSetup)
    run, pair = RunDir(run_dir), suffix(setup.server)
    # The first pair's calibration has no suffix.
    own = pair if run.calibration(pair).path.is_dir() else ""
    calibrations = []
    for place, (client, _) in enumerate(client_part.parts(rep_dir, setup)):
        folder = run.calibration(own, client.path.name if place else "")
        load = _load(client)
        calibrations.append(None if load is None else _in_force(folder, load.started, thresholds))
    return calibrations


def _in_force(folder: CalibrationDir, began: float, thresholds: Thresholds) -> Calibration | None:
    numbers = folder.numbers()
    for number in reversed(numbers):
        load = _load(folder.part(CEILING, number))
        if load is None or load.finished > began:
            continue
        if len(numbers) == 1:
            newest = folder.document
            return documents.read(newest, Calibration) if newest.exists() else None
        try:
            return _document(folder, number, generator(folder, number), thresholds)
        except ValueError:
            # That calibration failed and left no document.
            continue
    return None


def _load(client: ClientDir) -> GeneratorRun | None:
    """Return when a load began and ended; None where it is unknown, as in a failed repetition."""
    try:
        return documents.read(client.run, GeneratorRun)
    except ValueError:
        return None


def _document(
    folder: CalibrationDir, repetition: int, generator: str, thresholds: Thresholds
) -> Calibration:
    """Return calibration.json from the link's raw files and result.json of ceiling and floor."""
    link, top = folder.part(LINK, repetition).path, folder.part(CEILING, repetition)
    floor = None
    if _has_floor(generator):
        floor = documents.read(folder.part(FLOOR, repetition).result, Result)
    directions = {direction: _throughputs(link, direction) for direction in IPERF3}
    highest = {direction: throughputs[-1] for direction, throughputs in directions.items()}
    lower = {
        name: throughputs[0] for name, throughputs in directions.items() if len(throughputs) > 1
    }
    ceiling = documents.read(top.result, Result)
    conditions = documents.read(folder.conditions(repetition), CalibrationConditions)
    return Calibration(
        origin=CalibrationOrigin(run_id=conditions.run_id, measured=conditions.measured),
        generator=generator,
        iperf3=Iperf3(**highest, lower=lower or None),
        ceiling=_ceiling(ceiling),
        link_reasons=disturbance.calibration_link(
            highest,
            host_telemetry.recorded(RepetitionDir(link), documents.read(top.cell, RepetitionSetup)),
            thresholds,
        )
        or None,
        ceiling_reasons=ceiling.validity.reasons or None,
        send_delay_us=supported(floor.send_delay_us, floor.requests) if floor else None,
        baseline_latency_us=supported(floor.latency_us, floor.responses) if floor else None,
        round_trip_us=round_trip(documents.text(link / PING)),
        clock_offset_s=ClockOffsets(
            server=node_exporter.clock_offset(node_exporter.read(top.server_telemetry)),
            client=node_exporter.clock_offset(node_exporter.read(top.telemetry)),
        ),
    )


def _throughputs(link: Path, direction: str) -> list[Iperf3Direction]:
    """Return what iperf3 measured in a direction, with one stream and perhaps with several; the
    highest last."""
    throughputs = [iperf3.parse(documents.text(link / IPERF3[direction]))]
    parallel = link / IPERF3_SEVERAL[direction]
    if parallel.exists():
        throughputs.append(iperf3.parse(documents.text(parallel)))
    return sorted(throughputs, key=lambda throughput: throughput.bits_per_second)


def _ceiling(measured: Result) -> Ceiling:
    load, telemetry = measured.cell.load, measured.telemetry
    if measured.rate_achieved is None or measured.duration_s is None or telemetry is None:
        raise CalibrationError(f"the ceiling failed: {measured.error}")
    return Ceiling(
        requests_per_second=measured.rate_achieved,
        connections=load.connections,
        duration_s=measured.duration_s,
        client_cpu_busy=telemetry.client.cpu_busy,
        server_cpu_busy=telemetry.server.cpu_busy,
        generator=load.generator,
    )
