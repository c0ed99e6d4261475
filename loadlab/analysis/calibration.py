"""Derive calibration.json: the capacity of the link and of the generators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlab.analysis import calibration_reuse, result
from loadlab.core import documents
from loadlab.core.run_dir import FURTHER
from loadlab.telemetry import iperf3, node_exporter

_PING = re.compile(r"= ([0-9.]+)/([0-9.]+)/([0-9.]+)/([0-9.]+) ms")


class CalibrationError(ValueError):
    """A part of the calibration failed; the text says which."""


def round_trip(ping: str) -> dict[str, float]:
    """Return {min, mean, max, mdev} in µs from the last line of `ping -q`.

    Raises CalibrationError where it has no such times.
    """
    match = _PING.search(ping)
    if not match:
        raise CalibrationError(f"ping's output has no round-trip times: {ping[-200:]!r}")
    return {
        name: float(ms) * 1000
        for name, ms in zip(("min", "mean", "max", "mdev"), match.groups(), strict=True)
    }


def derive(
    calibration_dir: Path, repetition: int, generator: str, thresholds: dict[str, Any]
) -> dict[str, Any]:
    """Return calibration.json from calibration/{link,ceiling,floor}/rep-<n>/.

    Writes result.json of ceiling and floor and reduces their raw files. The baseline latency
    (floor_us) and its jitter_us are None where only the closed loop is used. See _document for the
    keys. Raises CalibrationError where a part failed.
    """
    rep = f"rep-{repetition}"
    for part in ("ceiling",) if generator == "wrk" else ("ceiling", "floor"):
        built = result.build(calibration_dir / part / rep, thresholds, None)
        if built["error"] is not None:
            raise CalibrationError(f"calibration/{part}/{rep}: {built['error']}")
        documents.write(calibration_dir / part / rep / "result.json", documents.dump(built))
        result.reduce(calibration_dir / part / rep, False)
    return _document(calibration_dir, repetition, generator)


def folders(run_dir: Path) -> list[Path]:
    """Return a run's sorted folders of calibration files.

    These are calibration, of the first host pair, calibration-<server> of the others, and each with
    +<client> for further clients of that pair.
    """
    return sorted(path for path in run_dir.glob("calibration*") if path.is_dir())


def numbers(calibration_dir: Path) -> list[int]:
    """Return the numbers of a folder's calibrations, ascending."""
    return sorted(int(path.name[4:]) for path in calibration_dir.glob("ceiling/rep-*"))


def generator(calibration_dir: Path, repetition: int) -> str:
    """Return the generator that measured a calibration's baseline latency; "wrk" where none did."""
    description = calibration_dir / "floor" / f"rep-{repetition}" / "cell.json"
    if not description.exists():
        return "wrk"
    return str(documents.load(description)["cell"]["load"]["generator"])


def in_force(run_dir: Path, rep_dir: Path) -> list[dict[str, Any] | None]:
    """Return the calibration of each client of a repetition, the last that ended before its load.

    A resumed run is calibrated again, and calibration.json is the newest, so it may be too new. An
    item is None where there was none, and where the repetition has no times and so is not judged.
    Times are of the client's clock.
    """
    description = documents.load(rep_dir / "cell.json")
    folder = run_dir / f"calibration-{description.get('pair')}"
    if not folder.is_dir():
        folder = run_dir / "calibration"
    found = []
    for place, (client, _) in enumerate(result.parts(rep_dir, description)):
        of = folder.with_name(f"{folder.name}{FURTHER}{client.name}") if place else folder
        found.append(_in_force(of, _moment(client, "started")))
    return found


def _in_force(folder: Path, began: float | None) -> dict[str, Any] | None:
    several = numbers(folder)
    for number in reversed(several):
        ended = _moment(folder / "ceiling" / f"rep-{number}", "finished")
        if began is None or ended is None or ended > began:
            continue
        newest = folder.with_name(f"{folder.name}.json")
        if len(several) == 1:
            return documents.load(newest) if newest.exists() else None
        try:
            return _document(folder, number, generator(folder, number))
        except ValueError:
            # That calibration failed and left no document.
            continue
    return None


def _moment(rep_dir: Path, which: str) -> float | None:
    """Return a time of run.json in unix seconds; None where it is absent, as in a failed
    repetition."""
    try:
        return float(documents.load(rep_dir / "run.json")[which])
    except (ValueError, LookupError, TypeError):
        return None


def _document(calibration_dir: Path, repetition: int, generator: str) -> dict[str, Any]:
    """Return calibration.json from the link's raw files and result.json of ceiling and floor.

    Keys: schema; origin {run_id, measured} where recorded; generator; iperf3 {client_to_server,
    server_to_client: iperf3.parse()}; ceiling {requests_per_second, connections, duration_s,
    client_cpu_busy, server_cpu_busy, generator}; jitter_us and floor_us (latency summaries or
    None); round_trip_us; clock_offset_s {server, client}.
    """
    rep = f"rep-{repetition}"
    link = calibration_dir / "link" / rep
    ceiling = documents.load(calibration_dir / "ceiling" / rep / "result.json")
    floor = None
    if generator != "wrk":
        floor = documents.load(calibration_dir / "floor" / rep / "result.json")
    return {
        "schema": documents.SCHEMA,
        **_origin(link),
        "generator": generator,
        "iperf3": {
            direction: iperf3.parse(documents.text(link / f"iperf3-{direction}.json"))
            for direction in ("client_to_server", "server_to_client")
        },
        "ceiling": {
            "requests_per_second": ceiling["rate_achieved"],
            "connections": ceiling["cell"]["load"]["connections"],
            "duration_s": ceiling["duration_s"],
            "client_cpu_busy": ceiling["telemetry"]["client"]["cpu_busy"],
            "server_cpu_busy": ceiling["telemetry"]["server"]["cpu_busy"],
            "generator": ceiling["cell"]["load"]["generator"],
        },
        "jitter_us": floor and floor["jitter_us"],
        "floor_us": floor and floor["latency_us"],
        "round_trip_us": round_trip(documents.text(link / "ping.txt")),
        "clock_offset_s": {
            role: node_exporter.clock_offset(
                node_exporter.read(calibration_dir / "ceiling" / rep / f"telemetry-{role}.prom.gz")
            )
            for role in ("server", "client")
        },
    }


def _origin(link: Path) -> dict[str, Any]:
    """Return which run measured the calibration and when, where that was recorded."""
    if not (link / calibration_reuse.CONDITIONS).exists():
        return {}
    record = documents.load(link / calibration_reuse.CONDITIONS)
    return {"origin": {key: record[key] for key in ("run_id", "measured")}}


def text(calibration: Mapping[str, Any]) -> str:
    """Return the calibration in one or two lines for the terminal."""
    there, back = (
        calibration["iperf3"][direction]["bits_per_second"] / 1e9
        for direction in ("client_to_server", "server_to_client")
    )
    ceiling = calibration["ceiling"]
    lines = [
        f"Link {there:.1f} Gb/s to the server, {back:.1f} back, round trip "
        f"{calibration['round_trip_us']['mean']:.0f} µs; ceiling {ceiling['generator']} against "
        f"nginx alone {ceiling['requests_per_second']:,.0f} requests/s"
    ]
    floor = calibration["floor_us"]
    if floor:
        late = calibration["jitter_us"]
        lines.append(
            f"Floor of {calibration['generator']} at the asked rate: "
            f"p50 {floor['p50'] / 1000:.2f} ms, p99 {floor['p99'] / 1000:.2f} ms, "
            f"max {floor['max'] / 1000:.1f} ms"
            + (f"; its clock is late by {late['p99'] / 1000:.2f} ms at p99" if late else "")
        )
    return "\n".join(lines)
