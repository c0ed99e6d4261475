"""Synthetic recordings of a host whose true use is known."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.model import HostTelemetry
from loadlab.telemetry import counters, host_recording, node_exporter
from loadlab.telemetry.counters import MODES, Counters
from loadlab.telemetry.node_exporter import Sample
from loadlab.telemetry.recordings import TelemetryError
from tests.unit.builders import present
from tests.unit.telemetry import recorder

START = 1000.0
CAPACITY = 1e9  # bits/s
STEP = 0.001

# Fraction of a core or of the link, by seconds since the start of the load.
Truth = Callable[[np.ndarray], np.ndarray]


def during(seconds: float, value: float = 1.0) -> Truth:
    """The same from the start of the load to its end, nothing else."""
    return lambda t: np.where((t >= 0) & (t < seconds), value, 0.0)


def steps(*values: float) -> Truth:
    """One value in each second of the load."""
    return lambda t: np.where(
        (t >= 0) & (t < len(values)), np.take(values, t.astype(int), mode="clip"), 0.0
    )


IDLE = during(0)


class Host:
    """A host with two cores: its true busy time on core 0, on core 1, of others, and its link.

    ``others`` is the part of the busy time of core 0 that is not the lab's.
    """

    def __init__(
        self,
        busy: Truth,
        *,
        second: Truth = IDLE,
        others: Truth = IDLE,
        softirq: Truth = IDLE,
        link: Truth = IDLE,
    ) -> None:
        self.grid = np.arange(-5, 20, STEP)
        truths = {
            "busy": busy, "second": second, "others": others, "softirq": softirq, "link": link,
        }  # fmt: skip
        self.sums = {name: np.cumsum(truth(self.grid)) * STEP for name, truth in truths.items()}

    def at(self, name: str, t: float) -> float:
        return float(np.interp(t, self.grid, self.sums[name]))

    def modes(self, core: int, name: str, t: float) -> dict[str, float]:
        """Seconds of a core in each mode that it has any in."""
        busy, softirq = self.at(name, t), self.at("softirq", t) if core == 0 else 0.0
        return {"user": busy, "softirq": softirq, "idle": 100 + t - busy - softirq}

    def scrape(self, t: float) -> Sample:
        values: dict[node_exporter.Key, float] = {(name,): 0.0 for name in node_exporter._PLAIN}
        for core, name in enumerate(("busy", "second")):
            values |= {(node_exporter.CPU, str(core), mode): 0.0 for mode in MODES}
            for mode, spent in self.modes(core, name, t).items():
                values[(node_exporter.CPU, str(core), mode)] = round(spent, 2)
        values[(node_exporter.CLOCK,)] = START + t
        for link in (node_exporter.RX, node_exporter.TX):
            values[(link, "eth0")] = self.at("link", t) * CAPACITY / 8
        return Sample(START + t, values)

    def recording(self, phase: float, seconds: float) -> str:
        """What record-host.sh writes, with readings from 1 s before to 1 s after the load."""
        lines = ["# ticks 100"]
        for t in np.arange(-1 - phase, seconds + 1.2, 0.2):
            lines.append(f"# reading {START + t:.6f}")
            for core, name in enumerate(("busy", "second")):
                user, softirq, idle = self.modes(core, name, t).values()
                ticks = [user, 0, 0, idle, 0, 0, softirq, 0, 0, 0]
                lines.append(f"cpu{core} {' '.join(str(int(100 * each)) for each in ticks)}")
            moved = int(self.at("link", t) * CAPACITY / 8)
            lines.append(f"  eth0: {moved} 0 0 0 0 0 0 0 {moved} 0 0 0 0 0 0 0")
            own = round(1e6 * (self.at("busy", t) - self.at("others", t)))
            lines.append(recorder.group("loadlab-load.service", own + 5_000_000))
        return "\n".join([*lines, ""])

    def seen(
        self, path: Path, seconds: float, phase: float, *, exact: bool, cpus: tuple[int, ...] = (0,)
    ) -> HostTelemetry:
        samples = [self.scrape(float(t)) for t in np.arange(-2 - phase, seconds + 2, 1.0)]
        recorded = read(path, self.recording(phase / 5, seconds), cpus) if exact else None
        return summarise(samples, seconds, recorded, cpus)


def read(folder: Path, text: str, cpus: tuple[int, ...] = (0,)) -> Counters | None:
    path = recorder.pack(folder / "cores.txt.gz", text.splitlines())
    return host_recording.counters(*host_recording.read(path), cpus, "eth0")


def summarise(
    samples: list[Sample], seconds: float, recorded: Counters | None, cpus: tuple[int, ...] = (0,)
) -> HostTelemetry:
    return node_exporter.summarise(samples, list(cpus), START, START + seconds, "eth0", recorded)


phases = st.floats(0, 0.999)


@pytest.mark.parametrize("seconds", [2, 3, 5])
@settings(max_examples=25)
@given(phase=phases)
def test_a_full_core_and_a_full_link_read_full(
    tmp_path_factory: pytest.TempPathFactory, seconds: int, phase: float
) -> None:
    """Whenever the readings are, and though nothing ran before and after."""
    host, folder = Host(during(seconds), link=during(seconds)), tmp_path_factory.mktemp("host")
    found = host.seen(folder, seconds, phase, exact=True)
    assert found.exact
    assert found.cpu_busy >= 0.95
    assert found.network.rx_bits_per_second >= 0.95 * CAPACITY
    assert present(found.per_second).t == pytest.approx(range(1, seconds + 1))
    # A scrape is up to a second beside the edge: at most a quarter of a second is missed there.
    scraped = host.seen(folder, seconds, phase, exact=False)
    assert not scraped.exact
    assert scraped.cpu_busy >= 1 - 0.5 / seconds - 0.01
    if seconds > 2:
        assert max(present(scraped.per_second).cpu_busy) >= 0.99


@settings(max_examples=25)
@given(phase=phases)
def test_cpu_use_is_found_for_each_second(
    tmp_path_factory: pytest.TempPathFactory, phase: float
) -> None:
    true = (0.94, 0.98, 0.98, 0.99, 0.16)
    found = Host(steps(*true)).seen(tmp_path_factory.mktemp("host"), 5, phase, exact=True)
    seconds = present(found.per_second).cpu_busy
    assert seconds == pytest.approx(true, abs=0.1)
    assert sum(busy > 0.9 for busy in seconds) >= 3


@settings(max_examples=25)
@given(phase=phases, share=st.floats(0, 1))
def test_foreign_cpu_is_the_others(
    tmp_path_factory: pytest.TempPathFactory, phase: float, share: float
) -> None:
    """A core that is always full; others have a part of it, in the second half of the load."""
    host = Host(
        lambda t: np.ones_like(t), others=lambda t: np.where((t >= 5) & (t < 10), share, 0.0)
    )
    found = host.seen(tmp_path_factory.mktemp("host"), 10, phase, exact=True)
    assert found.foreign_cpu == pytest.approx(share / 2, abs=0.02)
    seconds = present(present(found.per_second).foreign_cpu)
    assert seconds[:4] == pytest.approx([0] * 4, abs=0.03)
    assert seconds[6:] == pytest.approx([share] * 4, abs=0.03)


def test_work_that_the_kernels_ticks_miss_is_busy_time() -> None:
    """Idle time is measured; the ticks see 0.05 s of 0.35 s of work in short bursts."""
    t = np.arange(0.0, 6.0)
    spent = {mode: np.zeros_like(t) for mode in MODES} | {"user": 0.05 * t, "idle": 0.65 * t}
    use = counters.use(Counters(t, {0: spent}, t, t), [1.0, 3.0, 4.0])
    assert use.busy == pytest.approx([0.35, 0.35])
    assert use.busiest == pytest.approx([0.35, 0.35])


@pytest.mark.parametrize(
    ("host", "cpus", "figures"),
    [
        # The core takes packets for 0.3 of its time, and the generator runs for 0.5 of it.
        (Host(during(10, 0.5), softirq=during(10, 0.3)), (0,), {"foreign_cpu": 0}),
        # One full core of several.
        (Host(during(10, 0.1), second=during(10), softirq=during(10, 0.5)), (0, 1),
         {"cpu_busy": 0.8, "cpu_busiest_core": 1, "softirq_busiest_core": 0.5}),
        # The card's interrupts fill core 0, and no process runs.
        (Host(IDLE, softirq=during(10)), (0, 1),
         {"cpu_busy": 0.5, "softirq_busiest_core": 1, "cpu_busiest_core": 1}),
    ],
)  # fmt: skip
def test_interrupts_are_the_labs_own_and_a_full_core_is_seen(
    tmp_path: Path, host: Host, cpus: tuple[int, ...], figures: dict[str, float]
) -> None:
    found = host.seen(tmp_path, 10, 0.3, exact=True, cpus=cpus)
    for name, value in figures.items():
        assert getattr(found, name) == pytest.approx(value, abs=0.02), name
    if cpus == (0,):
        assert found.cpu.softirq == pytest.approx(0.3, abs=0.01)


def test_a_recording_that_ends_early_gives_way_to_the_scrapes(tmp_path: Path) -> None:
    host = Host(during(5))
    samples = [host.scrape(float(t)) for t in range(-2, 8)]
    found = summarise(samples, 5, read(tmp_path, host.recording(0, 2)))
    assert not found.exact
    assert found.foreign_cpu is None
    assert found.cpu_busy == pytest.approx(1)


def test_the_gap_of_a_late_scrape_is_not_part_of_the_load(tmp_path: Path) -> None:
    """No scrape for 8 s around the end: the host's own readings count."""
    host = Host(during(4))
    samples = [host.scrape(float(t)) for t in (-1, 0, 1, 2, 10)]
    assert summarise(samples, 4, None).cpu_busy < 0.7
    assert summarise(samples, 4, read(tmp_path, host.recording(0.1, 4))).cpu_busy > 0.95


def test_a_second_in_the_gap_at_the_end_of_a_load_is_that_of_the_load() -> None:
    """The recorder had no core for 2.4 s; half a core is used in the load, and all of it after."""
    t = np.array([0.0, 0.2, 0.4, 0.6, 3.0, 3.2])
    user = np.where(t <= 2, 0.5 * t, 1 + (t - 2))
    spent = {mode: np.zeros_like(t) for mode in MODES} | {"user": user, "idle": 9 + t - user}
    use = counters.use(Counters(t, {0: spent}, t, t), [0.4, 1.0, 1.5, 2.0])
    assert use.modes["user"] == pytest.approx([0.5] * 3)
    assert use.busy == pytest.approx([0.5] * 3)


def test_a_service_that_starts_and_ends_counts_once() -> None:
    used = [
        {"app": 9_000_000},
        {"app": 10_000_000, "load": 500_000},
        {"app": 11_000_000, "load": 1_500_000},
        {"app": 200_000},  # restarted, in a new group
    ]
    readings = [
        host_recording.Reading(float(t), {0: [0] * 8}, {"eth0": (0, 0)}, own)
        for t, own in enumerate(used)
    ]
    found = present(host_recording.counters(100, readings, [0], "eth0"))
    assert present(found.own).tolist() == [0, 1.5, 3.5, 3.7]


def test_a_kernel_without_groups_tells_no_foreign_cpu(tmp_path: Path) -> None:
    lines = Host(during(2)).recording(0, 2).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("own "))
    found = present(read(tmp_path, text))
    assert found.own is found.pressure is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("# ticks", "# tocks"), "does not begin with the ticks"),
        (("# ticks 100", "# ticks 0"), "does not begin with the ticks"),
        (("cpu0 ", "cpu0 x"), "line 3 not understood"),
        (("own /sys", "own\t/sys"), "line 6 not understood"),
        (("eth0", "eth1"), "has no eth0"),
        (("cpu0", "cpu7"), "has no cpu0"),
    ],
)
def test_what_is_not_understood_is_refused(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    text = Host(during(2)).recording(0, 2).replace(*change)
    with pytest.raises(TelemetryError, match=words):
        read(tmp_path, text)
