from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from loadlab.telemetry import cores
from loadlab.telemetry.cores import Reading
from loadlab.telemetry.pressure import pressure


def test_pressure_is_the_part_of_the_time_around_the_load() -> None:
    readings = [Reading(t, waits={"memory": us}) for t, us in ((0.0, 0), (1.0, 500_000))]
    readings += [Reading(1.2), Reading(2.0, waits={"memory": 900_000})]
    assert pressure(readings, 0.5, 1.9, "memory") == pytest.approx(0.45)
    assert pressure(readings, 1.0, 1.5, "memory") == pytest.approx(0.4)


def test_pressure_is_unknown_without_a_reading_on_both_sides() -> None:
    readings = [Reading(1.0, waits={"io": 1}), Reading(2.0, waits={"io": 5})]
    assert pressure(readings, 0.5, 1.5, "io") is None
    assert pressure(readings, 1.5, 2.5, "io") is None
    assert pressure(readings, 1.0, 2.0, "memory") is None


def test_pressure_is_read_from_the_lines_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "cores.txt.gz"
    text = (
        "# ticks 100\n# reading 1.5\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
        "memory some avg10=0.00 avg60=0.00 avg300=0.00 total=8\n"
        "io some avg10=1.00 avg60=0.00 avg300=0.00 total=9\n"
    )
    path.write_bytes(gzip.compress(text.encode()))
    _, (reading,) = cores.read(path)
    assert (reading.pressure, reading.waits) == (7, {"memory": 8, "io": 9})
