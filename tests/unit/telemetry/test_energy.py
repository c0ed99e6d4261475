"""The energy of a machine, from its counters in the recorded form to joules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loadlab.telemetry import cores, energy

ROOT = Path(__file__).parents[3]
RECORDER = ROOT / "roles" / "telemetry" / "files" / "record-host.sh"
MOST = 262143328850


def zone(folder: Path, name: str, kind: str, used: int) -> None:
    path = folder / "sys/class/powercap" / name
    path.mkdir(parents=True, exist_ok=True)
    for file, text in (("name", kind), ("energy_uj", used), ("max_energy_range_uj", MOST)):
        (path / file).write_text(f"{text}\n")


def recorded(folder: Path) -> list[str]:
    """What the recorder writes of a machine with these zones."""
    script = RECORDER.read_text()
    begin, end = script.index("zones=() zone_names=()"), script.index("\ncounters() {")
    loop = script[script.index("    for place in") : script.index("}\nmemory() {")]
    found = script[begin:end].replace("/sys/", f"{folder}/sys/")
    return subprocess.run(
        ["bash", "-c", f"set -u; shopt -s nullglob\n{found}\n{loop}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip


def joules(several: list[list[str]]) -> float | None:
    """The energy from 0.5 to 2.5 s where the readings at 0, 1, … s have these lines."""
    readings = []
    for t, lines in enumerate(several):
        reading = cores.Reading(float(t))
        assert all(cores._take(reading, line) for line in lines)
        readings.append(reading)
    return energy.joules(readings, 0.5, 2.5)


def test_energy_is_that_of_packages_and_memory_and_begins_again(tmp_path: Path) -> None:
    several = []
    for t in range(4):
        zone(tmp_path, "intel-rapl:0", "package-0", (MOST - 15_000_000 + 10_000_000 * t) % MOST)
        zone(tmp_path, "intel-rapl:0:0", "core", 7_000_000 * t)
        zone(tmp_path, "intel-rapl:0:1", "dram", 2_000_000 * t)
        zone(tmp_path, "intel-rapl:1", "psys", 50_000_000 * t)
        several.append(recorded(tmp_path))
    assert several[0] == [
        f"energy intel-rapl:0 package-0 {MOST} {MOST - 15_000_000}",
        f"energy intel-rapl:0:1 dram {MOST} 0",
    ]
    assert joules(several) == pytest.approx(2 * (10 + 2))


def test_a_machine_without_the_counters_has_no_energy(tmp_path: Path) -> None:
    assert recorded(tmp_path) == []
    assert joules([[]] * 4) is None
    one = ["energy intel-rapl:0 package-0 1000 5"]
    assert joules([one, one, [], one]) is None
    assert joules([one, one]) is None
