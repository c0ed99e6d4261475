"""What record-host.sh wrote of a host: lost packets, energy, pressure, allowances of the card."""

from pathlib import Path

import pytest

from loadlab.model import Drops
from loadlab.telemetry import counters, host_recording
from loadlab.telemetry.host_recording import Reading, pressure
from loadlab.telemetry.recordings import TelemetryError
from tests.unit import stand_ins
from tests.unit.builders import present
from tests.unit.telemetry import recorder
from tests.unit.telemetry.test_counters import Host, during

ROOT = Path(__file__).parents[3]
# What a card of the driver ena prints.
RECORDED = ROOT / "tests" / "fixtures" / "ena" / "ethtool-S.txt"
# The energy in µJ at which a counter begins again.
MOST = 262143328850
# Lost packets, of a host with a VLAN on a bond. Counters at each second: packets and drops of eth1
# and eth2, then for cores 0, 1 and 9 the hexadecimal numbers of dropped packets and of squeezes.
# Core 9 is another host's. The VLAN drops nothing itself.
READINGS = {
    0: ("100 1", "200 0", "00000000 00000000", "fffffffe 00000005", "00000000 00000000"),
    1: ("1000 4", "900 2", "00000003 00000001", "fffffffe 00000006", "00000007 00000007"),
    2: ("5000 24", "3900 12", "0000000d 00000002", "00000001 0000000a", "00000009 00000009"),
    3: ("9000 44", "8900 32", "0000001d 00000009", "00000009 0000000f", "0000000f 0000000f"),
}
BELOW = "below vlan7 bond0\nbelow bond0 eth1\nbelow bond0 eth2\n"


def recording(path: Path, below: str = BELOW) -> list[Reading]:
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
    return read(path, text)


def read(folder: Path, text: str) -> list[Reading]:
    path = recorder.pack(folder / "cores.txt.gz", text.splitlines())
    return host_recording.read(path)[1]


@pytest.mark.parametrize(("start", "end"), [(1.0, 2.0), (1.3, 1.9)])
def test_drops_are_those_of_a_bonds_cards_and_of_the_hosts_cores(
    tmp_path: Path, start: float, end: float
) -> None:
    """From the last reading before the load to the first after it; a counter of 32 bits wraps."""
    found = host_recording.drops(recording(tmp_path), start, end, [0, 1], "vlan7")
    assert found == Drops(
        received=4000 + 3000, dropped=20 + 10, softnet_dropped=10 + 3, softnet_squeezed=1 + 4
    )


def test_drops_of_a_single_card(tmp_path: Path) -> None:
    found = host_recording.drops(recording(tmp_path, ""), 1, 2, [0], "eth2")
    assert found == Drops(received=3000, dropped=10, softnet_dropped=10, softnet_squeezed=1)


def test_losses_of_the_link_are_those_during_the_load(tmp_path: Path) -> None:
    readings = recording(tmp_path, "carrier eth1 4\n")
    counted = [reading for reading in readings if reading.carrier]
    for reading, losses in zip(counted, (3, 4, 4, 6), strict=False):
        reading.carrier["eth1"] = losses
    first, second, third = (reading.t for reading in counted[:3])
    assert host_recording.link_losses(readings, first, second, "eth1") == 1
    assert host_recording.link_losses(readings, second, third, "eth1") == 0
    assert host_recording.link_losses(readings, first, second, "eth2") is None
    assert host_recording.link_losses(readings, first - 1, second, "eth1") is None


def test_drops_are_absent_where_the_recording_does_not_cover_the_load(tmp_path: Path) -> None:
    readings = recording(tmp_path)
    assert host_recording.drops(readings, -1, 2, [0], "eth1") is None
    assert host_recording.drops(readings, 1, 4, [0], "eth1") is None
    for reading in readings:
        reading.softnet.clear()
    assert host_recording.drops(readings, 1, 2, [0], "eth1") is None


def test_drops_refuse_a_counter_that_falls(tmp_path: Path) -> None:
    readings = recording(tmp_path)
    readings[-2].packets["eth2"] = (10, 0)
    with pytest.raises(TelemetryError, match="a counter of eth2 falls"):
        host_recording.drops(readings, 1, 3, [0], "vlan7")


def zone(folder: Path, name: str, kind: str, used: int) -> None:
    path = folder / "sys/class/powercap" / name
    path.mkdir(parents=True, exist_ok=True)
    for file, text in (("name", kind), ("energy_uj", used), ("max_energy_range_uj", MOST)):
        (path / file).write_text(f"{text}\n")


def energy_lines(folder: Path) -> list[str]:
    """What the recorder writes of a machine with these zones."""
    zones = recorder.function("zones=() zone_names=()", "\ncounters() {")
    loop = recorder.function("    for place in", "}\nmemory() {")
    zones, loop = zones.removesuffix("\ncounters() {"), loop.removesuffix("}\nmemory() {")
    return recorder.printed(f"{zones.replace('/sys/', f'{folder}/sys/')}\n{loop}")


def joules(several: list[list[str]]) -> float | None:
    """The energy from 0.5 to 2.5 s where the readings at 0, 1, … s have these lines."""
    readings = []
    for t, lines in enumerate(several):
        reading = Reading(float(t))
        assert all(host_recording._take(reading, line) for line in lines)
        readings.append(reading)
    return host_recording.joules(readings, 0.5, 2.5)


def test_energy_is_that_of_packages_and_memory_and_begins_again(tmp_path: Path) -> None:
    several = []
    for t in range(4):
        zone(tmp_path, "intel-rapl:0", "package-0", (MOST - 15_000_000 + 10_000_000 * t) % MOST)
        zone(tmp_path, "intel-rapl:0:0", "core", 7_000_000 * t)
        zone(tmp_path, "intel-rapl:0:1", "dram", 2_000_000 * t)
        zone(tmp_path, "intel-rapl:1", "psys", 50_000_000 * t)
        several.append(energy_lines(tmp_path))
    assert several[0] == [
        f"energy intel-rapl:0 package-0 {MOST} {MOST - 15_000_000}",
        f"energy intel-rapl:0:1 dram {MOST} 0",
    ]
    assert joules(several) == pytest.approx(2 * (10 + 2))


def test_a_machine_without_the_counters_has_no_energy(tmp_path: Path) -> None:
    assert energy_lines(tmp_path) == []
    assert joules([[]] * 4) is None
    one = ["energy intel-rapl:0 package-0 1000 5"]
    assert joules([one, one, [], one]) is None
    assert joules([one, one]) is None


def test_pressure_is_the_part_of_the_time_around_the_load() -> None:
    readings = [Reading(t, waits={"memory": us}) for t, us in ((0.0, 0), (1.0, 500_000))]
    readings += [Reading(1.2), Reading(2.0, waits={"memory": 900_000})]
    assert pressure(readings, 0.5, 1.9, "memory") == pytest.approx(0.45)
    assert pressure(readings, 1.0, 1.5, "memory") == pytest.approx(0.4)

    # Without a reading on both sides.
    assert pressure(readings, -0.5, 1.5, "memory") is None
    assert pressure(readings, 1.5, 2.5, "memory") is None
    assert pressure(readings, 1.0, 2.0, "io") is None


def test_pressure_is_read_from_the_lines_of_the_kernel(tmp_path: Path) -> None:
    (reading,) = read(
        tmp_path,
        "# ticks 100\n# reading 1.5\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
        "memory some avg10=0.00 avg60=0.00 avg300=0.00 total=8\n"
        "io some avg10=1.00 avg60=0.00 avg300=0.00 total=9\n",
    )
    assert (reading.pressure, reading.waits) == (7, {"memory": 8, "io": 9})


def lines(folder: Path, text: str) -> list[str]:
    """What the recorder writes of a machine with this card and a veth pair."""
    (folder / "sys/class/net/ens5/device").mkdir(parents=True, exist_ok=True)
    (folder / "sys/class/net/veth0").mkdir(exist_ok=True)
    (folder / "said").write_text(text)
    stand_ins.put(folder, {"ethtool": f'[ "$1 $2" = "-S ens5" ] && cat {folder}/said'})
    function = recorder.function("allowances() {").replace("/sys/", f"{folder}/sys/")
    return recorder.printed(f"{function}allowances", PATH=f"{folder}:/usr/bin:/bin")


def exceeded(folder: Path, first: list[str], last: list[str]) -> dict[str, int] | None:
    """What the telemetry has where the first and the last reading had these lines."""
    text = Host(during(2)).recording(0, 2).replace("eth0", "ens5").splitlines()
    second = [place for place, line in enumerate(text) if line.startswith("# reading")][1]
    every = [*text[:second], *first, *text[second:], *last]
    path = recorder.pack(folder / "cores.txt.gz", every)
    found = present(host_recording.counters(*host_recording.read(path), [0], "ens5"))
    return dict(found.exceeded) if found.exceeded else None


def test_allowances_of_ena_are_recorded_and_their_rise_is_told(tmp_path: Path) -> None:
    text = RECORDED.read_text()
    before = lines(tmp_path, text)
    names = ("bw_in", "bw_out", "pps", "conntrack", "linklocal")
    assert before == [
        f"allowance ens5 {name}_allowance_exceeded {1482 if name == 'bw_out' else 0}"
        for name in names
    ]
    risen = text.replace("bw_out_allowance_exceeded: 1482", "bw_out_allowance_exceeded: 1985")
    assert exceeded(tmp_path, before, lines(tmp_path, risen)) == {
        f"{name}_allowance_exceeded": 503 if name == "bw_out" else 0 for name in names
    }


def test_allowances_of_a_card_that_was_reset_count_from_0(tmp_path: Path) -> None:
    name = "pps_allowance_exceeded"
    first, last = ([f"allowance ens5 {name} {count}"] for count in (900, 7))
    assert exceeded(tmp_path, first, last) == {name: 7}


@pytest.mark.parametrize("text", ["NIC statistics:\n     rx_packets: 12\n", ""])
def test_allowances_of_another_card_are_unknown(tmp_path: Path, text: str) -> None:
    assert lines(tmp_path, text) == []
    assert exceeded(tmp_path, [], []) is None


def test_allowances_of_the_management_link_are_not_of_the_load(tmp_path: Path) -> None:
    other = ["allowance eth9 pps_allowance_exceeded 5"]
    assert exceeded(tmp_path, other, other) is None


def test_iowait_that_becomes_idle_time_is_neither_below_0_nor_busy() -> None:
    """An idle core whose readings fall into waits for a disk, which end as idle time."""
    readings = [
        Reading(1000 + n / 5, {0: [0, 0, 0, 900 + 20 * n - io, 50 + io, 0, 0, 0]}, {"eth0": (0, 0)})
        for n in range(40)
        for io in [19 if n % 5 == 3 else 0]
    ]
    counted = present(host_recording.counters(100, readings, [0], "eth0"))
    for begin in (1001.0, 1001.5, 1001.55, 1001.6, 1001.65):
        use = counters.use(counted, counters.edges(counted, begin, begin + 5))
        assert all(values.min() >= 0 for values in use.modes.values())
        assert use.busy.max() <= 0.01
