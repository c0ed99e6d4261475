"""Lost packets, from readings as record-host.sh writes them of a host with a VLAN on a bond."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from loadlab.model import Drops
from loadlab.telemetry import cores, drops
from loadlab.telemetry.counters import TelemetryError

# Counters at each second: packets and drops of eth1 and eth2, then for cores 0, 1 and 9 the
# hexadecimal numbers of dropped packets and of squeezes. Core 9 is another host's. The VLAN drops
# nothing itself.
READINGS = {
    0: ("100 1", "200 0", "00000000 00000000", "fffffffe 00000005", "00000000 00000000"),
    1: ("1000 4", "900 2", "00000003 00000001", "fffffffe 00000006", "00000007 00000007"),
    2: ("5000 24", "3900 12", "0000000d 00000002", "00000001 0000000a", "00000009 00000009"),
    3: ("9000 44", "8900 32", "0000001d 00000009", "00000009 0000000f", "0000000f 0000000f"),
}
BELOW = "below vlan7 bond0\nbelow bond0 eth1\nbelow bond0 eth2\n"


def recording(path: Path, below: str = BELOW) -> list[cores.Reading]:
    text = "# ticks 100\n"
    for t, (eth1, eth2, *softnet) in READINGS.items():
        text += f"# reading {t}.000000\ncpu0 1 0 0 1 0 0 0 0 0 0\n"
        for name, counted in (("eth0", "7 7"), ("eth1", eth1), ("eth2", eth2), ("vlan7", "9 0")):
            packets, dropped = counted.split()
            text += f"{name:>6}: 9 {packets} 0 {dropped} 0 0 0 0 9 9 0 0 0 0 0 0\n"
        for core, counted in zip(("00000000", "00000001", "00000009"), softnet, strict=True):
            rest = " 00000000" * 9
            text += f"softnet 00706d0d {counted}{rest} {core} 00000000 00000000\n"
        # Between the seconds the cores and links alone are read.
        text += f"{below}# reading {t}.200000\ncpu0 1 0 0 1 0 0 0 0 0 0\n"
    recorded = path / "cores.txt.gz"
    recorded.write_bytes(gzip.compress(text.encode()))
    return cores.read(recorded)[1]


@pytest.mark.parametrize(("start", "end"), [(1.0, 2.0), (1.3, 1.9)])
def test_drops_are_those_of_a_bonds_cards_and_of_the_hosts_cores(
    tmp_path: Path, start: float, end: float
) -> None:
    """From the last reading before the load to the first after it; a counter of 32 bits wraps."""
    found = drops.drops(recording(tmp_path), start, end, [0, 1], "vlan7")
    assert found == Drops(
        received=4000 + 3000, dropped=20 + 10, softnet_dropped=10 + 3, softnet_squeezed=1 + 4
    )


def test_drops_of_a_single_card(tmp_path: Path) -> None:
    found = drops.drops(recording(tmp_path, ""), 1, 2, [0], "eth2")
    assert found == Drops(received=3000, dropped=10, softnet_dropped=10, softnet_squeezed=1)


def test_drops_are_absent_where_the_recording_does_not_cover_the_load(tmp_path: Path) -> None:
    readings = recording(tmp_path)
    assert drops.drops(readings, -1, 2, [0], "eth1") is None
    assert drops.drops(readings, 1, 4, [0], "eth1") is None
    # A recording of an earlier version has no such readings.
    for reading in readings:
        reading.softnet.clear()
    assert drops.drops(readings, 1, 2, [0], "eth1") is None


def test_drops_refuse_a_counter_that_falls(tmp_path: Path) -> None:
    readings = recording(tmp_path)
    readings[-2].packets["eth2"] = (10, 0)
    with pytest.raises(TelemetryError, match="a counter of eth2 falls"):
        drops.drops(readings, 1, 3, [0], "vlan7")
