import gzip
import re
import time
from pathlib import Path

import msgspec
import pytest

from loadlab.model import TcpCounts
from loadlab.telemetry import node_exporter
from loadlab.telemetry.counters import MODES
from loadlab.telemetry.node_exporter import Sample
from loadlab.telemetry.recordings import TelemetryError
from tests.unit import builders

RECORDING = Path(__file__).parents[2] / "fixtures" / "rep-wrk" / "telemetry-server.prom.gz"


def page(t: float, **changed: float) -> Sample:
    """A scrape at controller's t of a host whose clock is 100 s ahead; a busy cpu 0, an idle 1."""
    values: dict[node_exporter.Key, float] = {(name,): 0.0 for name in node_exporter._PLAIN}
    for mode in MODES:
        values[(node_exporter.CPU, "0", mode)] = values[(node_exporter.CPU, "1", mode)] = 0.0
    values[(node_exporter.CPU, "0", "user")] = 0.5 * t
    values[(node_exporter.CPU, "0", "softirq")] = 0.25 * t
    values[(node_exporter.CPU, "0", "idle")] = 0.25 * t
    values[(node_exporter.CPU, "1", "idle")] = t
    values[(node_exporter.CLOCK,)] = t + 100
    values[(node_exporter.RX, "eth0")] = 1000 * t
    values[(node_exporter.TX, "eth0")] = 250 * t
    for name, value in changed.items():
        (key,) = [key for key in values if key[0].endswith(name)]
        values[key] = value
    return Sample(t, values)


def test_a_recording_reads_back() -> None:
    samples = node_exporter.read(RECORDING)
    assert len(samples) >= 6
    with gzip.open(RECORDING, "rt") as file:
        text = file.read()
    clocks = [line.split()[1] for line in text.splitlines() if line.startswith("node_time_seconds")]
    read = [s.values and s.values[(node_exporter.CLOCK,)] for s in samples]
    assert read == [float(clock) for clock in clocks]


def test_cpu_fractions_of_a_real_recording_add_up_to_1() -> None:
    samples = node_exporter.read(RECORDING)
    clocks = [s.values[(node_exporter.CLOCK,)] for s in samples if s.values]
    found = node_exporter.summarise(samples, [0], clocks[1], clocks[-2], "eth0")
    assert sum(msgspec.structs.asdict(found.cpu).values()) == pytest.approx(1)
    assert 0.3 < found.cpu_busy <= 1
    assert found.samples == len(samples) - 2
    assert found.clock_step_s < 0.1
    assert found.sockets.established_max >= 8


def test_only_the_listed_cpus_count() -> None:
    samples = [page(t) for t in range(10, 15)]
    one = node_exporter.summarise(samples, [0], 111, 113, "eth0")
    assert one.cpu.user == pytest.approx(0.5)
    assert one.cpu_busy == pytest.approx(0.75)
    both = node_exporter.summarise(samples, [0, 1], 111, 113, "eth0")
    assert both.cpu_busy == pytest.approx(0.375)
    assert (one.cores, both.cores) == (1, 2)


def test_the_window_is_the_load_itself() -> None:
    samples = [page(t) for t in range(10, 20)]
    found = node_exporter.summarise(samples, [0], 112.5, 115.5, "eth0")
    assert found.samples == 5  # 112 to 116 of the host's clock
    assert found.network.rx_bytes == 3000
    assert found.network.rx_bits_per_second == pytest.approx(8000)
    assert found.network.tx_bits_per_second == pytest.approx(2000)
    seconds = builders.present(found.per_second)
    assert seconds.t == pytest.approx([0.5, 1.5, 2.5, 3.0])
    assert seconds.cpu_busy == pytest.approx([0.75] * 4)
    outermost = node_exporter.summarise(samples, [0], 0, 999, "eth0")
    assert outermost.samples == 10


def test_deltas_and_extremes() -> None:
    values = {
        "pswpin": (5, 5, 9), "PassiveOpens": (4, 4, 9), "RetransSegs": (1, 4, 9),
        "ListenOverflows": (3, 3, 5), "CurrEstab": (7, 70, 8), "oom_kill": (0, 2, 5),
        "MemAvailable_bytes": (900, 300, 600), "DelayedACKs": (0, 4, 9),
    }  # fmt: skip
    samples = [
        page(10 + at, **{name: numbers[at] for name, numbers in values.items()}) for at in range(3)
    ]
    found = node_exporter.summarise(samples, [0], 110, 112, "eth0")
    assert found.swap_pages == 4
    assert found.oom_kills == 5
    counted = {"retransmits": 8, "listen_overflows": 2, "passive_opens": 5, "delayed_acks": 9}
    assert found.tcp == TcpCounts(**{**dict.fromkeys(TcpCounts.__struct_fields__, 0), **counted})
    assert found.sockets.established_max == 70
    assert found.memory.available_min_bytes == 300


def test_a_clock_that_jumps_is_seen() -> None:
    samples = [page(t, node_time_seconds=t + 100 + 0.7 * (t >= 12)) for t in range(10, 14)]
    found = node_exporter.summarise(samples, [0], 110, 113, "eth0")
    assert found.clock_step_s == pytest.approx(0.7)


def test_offset_is_the_hosts_clock_less_the_controllers() -> None:
    assert node_exporter.clock_offset([page(10), Sample(11, None, "x"), page(12)]) == 100
    with pytest.raises(TelemetryError, match="none of 1"):
        node_exporter.clock_offset([Sample(11, None, "x")])


def test_missed_scrapes_are_counted() -> None:
    samples = [page(10), Sample(11, None, "refused"), page(12), page(13)]
    found = node_exporter.summarise(samples, [0], 110, 113, "eth0")
    assert (found.samples, found.missed) == (3, 1)


def test_a_falling_counter_is_named() -> None:
    samples = [page(10), page(11, RetransSegs=5), page(12, RetransSegs=4)]
    with pytest.raises(TelemetryError, match=r"Tcp_RetransSegs falls from 5 to 4"):
        node_exporter.summarise(samples, [0], 110, 112, "eth0")


@pytest.mark.parametrize(
    ("cpus", "interface", "words"),
    [([0], "eth9", "eth9"), ([7], "eth0", "cpu_seconds_total 7"), ([], "eth0", "no cpus")],
)
def test_what_is_not_on_the_page_is_named(cpus: list[int], interface: str, words: str) -> None:
    with pytest.raises(TelemetryError, match=words):
        node_exporter.summarise([page(10), page(11)], cpus, 110, 111, interface)


def test_fewer_than_two_scrapes_are_refused() -> None:
    with pytest.raises(TelemetryError, match="at least 2"):
        node_exporter.summarise([page(10), Sample(11, None, "x")], [0], 110, 111, "eth0")


def record(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_blocks_read_back_also_when_appended(tmp_path: Path) -> None:
    with gzip.open(RECORDING, "rt") as file:
        real = "# HELP" + file.read().split("# scrape ")[1].split("# HELP", 1)[1]
    path = tmp_path / "x.prom.gz"
    failed = node_exporter.failed_block(6.5, "timed\nout")
    for text in (node_exporter.block(5.25, real), failed, node_exporter.block(7, real)):
        with gzip.open(path, "at") as file:
            file.write(text)
    samples = node_exporter.read(path)
    assert [(s.t, s.failed) for s in samples] == [(5.25, None), (6.5, "timed out"), (7.0, None)]
    assert samples[0].values == samples[2].values
    assert samples[1].values is None


def test_broken_recordings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.prom.gz"
    for data, words in ((RECORDING.read_bytes()[:-50], "truncated"), (b"plain", "no gzip")):
        path.write_bytes(data)
        with pytest.raises(TelemetryError, match=words):
            node_exporter.read(path)
    with gzip.open(RECORDING, "rt") as file:
        real = file.read()
    for text, words in (
        (real[: len(real) * 2 // 3], "truncated, or a collector is off"),
        ("node_time_seconds 1\n" + real, "before any scrape"),
        (real.replace("# scrape 1", "# scrape x", 1), "not understood"),
        ("# scrape 1 failed: no\nnode_time_seconds 1\n", "follows a failed"),
        (real.replace("node_time_seconds 1", "node_time_seconds one", 1), "does not parse"),
        (re.sub(r"(?m)^(node_time_seconds) .*", r"\1 NaN", real), "no number for node_time_sec"),
    ):
        with pytest.raises(TelemetryError, match=words):
            node_exporter.read(record(path, text))


def test_eighty_pages_parse_in_about_a_second(tmp_path: Path) -> None:
    with gzip.open(RECORDING, "rt") as file:
        blocks = file.read().split("# scrape ")[1:]
    path = record(tmp_path / "long.prom.gz", "".join(f"# scrape {blocks[0]}" for _ in range(80)))
    begin = time.process_time()
    assert len(node_exporter.read(path)) == 80
    assert time.process_time() - begin < 1.5


def test_the_warm_ups_connections_are_not_those_of_the_load() -> None:
    """64 were there before the start and 5 after the end; the load had 29."""
    counts = [64, 29, 29, 5]
    samples = [page(10 + index, CurrEstab=count) for index, count in enumerate(counts)]
    found = node_exporter.summarise(samples, [0], 110.5, 112.5, "eth0")
    assert found.sockets.established_max == 29
    # What is left after the end counts.
    samples[-1] = page(13, CurrEstab=31)
    found = node_exporter.summarise(samples, [0], 110.5, 112.5, "eth0")
    assert found.sockets.established_max == 31
    # A load between two scrapes has none of its own.
    found = node_exporter.summarise(samples[:2], [0], 110.2, 110.8, "eth0")
    assert found.sockets.established_max == 64


@pytest.mark.parametrize(
    ("offsets", "step"),
    [
        ([0.0, 0.0, 0.0, 0.5, 0.5, 0.5], 0.5),
        ([0.0, 0.0, 0.0, 0.5, 0.5], 0.5),
        ([0.0, 0.5], 0.5),
        # One page came late.
        ([0.0, 0.0, -0.11, 0.0, 0.0, 0.0], 0.0),
    ],
)
def test_a_clock_that_was_set_is_told_from_a_page_that_came_late(
    offsets: list[float], step: float
) -> None:
    before, after = node_exporter._clock_offsets(offsets)
    assert abs(after - before) == pytest.approx(step)
