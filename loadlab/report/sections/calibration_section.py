"""The part of the page on the calibration."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadlab.generators import registry
from loadlab.model import Calibration, CalibrationOrigin, Ceiling, Iperf3, Iperf3Direction, Latency
from loadlab.report.html import Column, Section, Table, TableCell, Text, link, links, table
from loadlab.report.words.calibration_words import disturbed
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import (
    CEILING,
    CONDITIONS,
    FLOOR,
    HERE,
    IPERF3,
    IPERF3_SEVERAL,
    LINK,
    PING,
    RESULT,
    RunDir,
)


class _Quantity(NamedTuple):
    """What was measured before any stack; ``files``: the raw files that it comes from."""

    name: str
    value: str
    meaning: str
    files: TableCell = TableCell()


_COLUMNS: Sequence[Column[_Quantity]] = [
    Column("what", lambda quantity: quantity.name),
    Column("value", lambda quantity: quantity.value),
    Column("meaning", lambda quantity: quantity.meaning),
    Column("from", lambda quantity: quantity.files),
]


def section(run_dir: Path, calibration: Calibration | None) -> Section:
    """Return what the network and the generators can do."""
    shown = (
        Text(f"Not calibrated: no {HERE.calibration().document}.", css="missing")
        if calibration is None
        else _table(run_dir, calibration)
    )
    return Section("Calibration", [shown], "calibration", "Calibration", folded=True)


def _table(run_dir: Path, calibration: Calibration) -> Table:
    floor = _newest(run_dir, FLOOR, RESULT, registry.get(calibration.generator).output)
    trip, offset = calibration.round_trip_us, calibration.clock_offset_s
    ceiling_output = registry.get(calibration.ceiling.generator).output
    rows = [
        *_link(run_dir, "client to server", "client_to_server", calibration.iperf3),
        *_link(run_dir, "server to client", "server_to_client", calibration.iperf3),
        _Quantity(
            "Round trip",
            f"mean {formatting.significant(trip.mean)} µs, {formatting.significant(trip.min)} to "
            f"{formatting.significant(trip.max)}",
            "in every latency at least once (ping)",
            _newest(run_dir, LINK, PING),
        ),
        _Quantity(
            "Ceiling",
            _ceiling(calibration.ceiling),
            "highest rate from nginx's own static answer",
            _newest(run_dir, CEILING, RESULT, ceiling_output),
        ),
        _Quantity(
            "Baseline latency",
            _latency(calibration.baseline_latency_us),
            f"latency of {calibration.generator} from nginx's own static answer: nothing below "
            "it is the stack's",
            floor if calibration.baseline_latency_us else TableCell(),
        ),
        _Quantity(
            "Send delay",
            _latency(calibration.send_delay_us),
            f"how late {calibration.generator} issues requests; in no latency",
            floor if calibration.send_delay_us else TableCell(),
        ),
        _Quantity(
            "Clocks",
            f"server {1000 * offset.server:+.1f} ms, client {1000 * offset.client:+.1f} ms",
            "each host's less the controller's",
        ),
    ]
    rows += [
        _Quantity("Disturbed", line, "judges no repetition") for line in disturbed(calibration)
    ]
    rows.append(_origin(run_dir, calibration.origin))
    return table(
        "Measured before any stack.", _COLUMNS, rows, sources=[link(HERE.calibration().document)]
    )


def _newest(run_dir: Path, part: str, *names: str) -> TableCell:
    """Return links to files of the newest repetition of a part of the calibration."""
    calibrations = RunDir(run_dir).calibration()
    newest = calibrations.numbers(part)[-1:]
    paths = [calibrations.part(part, number).path / name for number in newest for name in names]
    return links(*(link(path.relative_to(run_dir)) for path in paths if path.exists()))


def _link(run_dir: Path, words: str, direction: str, iperf3: Iperf3) -> list[_Quantity]:
    """Return the row of the link's throughput, and that of a lower figure with other streams."""
    link, lower = getattr(iperf3, direction), (iperf3.lower or {}).get(direction)
    sources = _newest(run_dir, LINK, IPERF3[direction], IPERF3_SEVERAL[direction])
    meaning = "throughput of the network (iperf3)"
    if link.core_limited:
        meaning += "; iperf3 filled its cores, so the network may carry more"
    rows = [_Quantity(f"Link, {words}", _throughput(link), meaning, sources)]
    if lower:
        meaning = "not the link's: the other figure is higher"
        rows.append(_Quantity(f"Link, {words}", _throughput(lower), meaning, sources))
    return rows


def _throughput(direction: Iperf3Direction) -> str:
    return (
        f"{formatting.bits(direction.bits_per_second)} with "
        f"{formatting.plural(direction.streams, 'stream')}, "
        f"{formatting.plural(direction.retransmits, 'segment')} sent again in "
        f"{direction.seconds:.0f} s"
    )


def _ceiling(ceiling: Ceiling) -> str:
    return (
        f"{formatting.rate(ceiling.requests_per_second)} requests/s with {ceiling.generator}, "
        f"{ceiling.connections} connections; client {formatting.percent(ceiling.client_cpu_busy)} "
        f"busy, server {formatting.percent(ceiling.server_cpu_busy)}"
    )


def _latency(latency: Latency | None) -> str:
    if latency is None or latency.p50 is None:
        return "not measured"
    return (
        f"p50 {ms(latency.p50)}, p99 {ms(latency.p99)}, p99.9 {ms(latency.p99_9)}, max "
        f"{ms(latency.max)} ms"
    )


def _origin(run_dir: Path, origin: CalibrationOrigin) -> _Quantity:
    measured = datetime.datetime.fromtimestamp(origin.measured, datetime.UTC)
    reused = "" if origin.run_id == RunDir(run_dir).run_id else ", and used again"
    return _Quantity(
        "Measured",
        f"{measured:%Y-%m-%d %H:%M:%S} UTC by run {origin.run_id}{reused}",
        "under the same hosts, programs, tuning, network and load",
        _newest(run_dir, LINK, CONDITIONS),
    )
