"""How often a comparison that looks after each block is right; docs/statistics.md has the figures.

tests/unit/stats/test_sequential.py has a small version.
"""

import pytest

from loadlab.stats import sequential
from tests.simulation import gates
from tests.simulation.gates import Noise

RUNS = 2000
NOISES = {
    f"{name} {size:.0%}": noise(size)
    for name, noise in {
        "normal": gates.normal,
        "heavy": gates.heavy,
        "drifting": gates.drifting,
        "two speeds": gates.two_speeds,
    }.items()
    for size in (0.02, 0.05, 0.1)
}
METRICS = ("cpu_us_per_request", "p50_ms", "p99_ms", "memory_mib")
RECORDED = [
    ("quiet", "goodput"),
    *((hosts, one) for hosts in ("quiet", "disturbed") for one in METRICS),
]
# Blocks of six cells in 20 minutes on the hosts of the recordings.
RECORDED_BLOCKS = 26


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_equal_variants_are_rarely_told_apart_at_any_look(noise: Noise) -> None:
    found = gates.looks(noise, 0, RUNS)
    print(f"equal: {dict(found.of)}, {found.blocks:.0f} blocks")
    # Six metrics of a run share the error rate.
    assert 6 * (found["slower"] + found["faster"]) <= sequential.ERROR_RATE


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_10_percent_more_is_found_within_20_minutes(noise: Noise) -> None:
    found = gates.looks(noise, 0.1, RUNS)
    print(f"+10 %: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert found["slower"] >= 0.9


def test_10_percent_more_is_found_in_the_blocks_of_six_cells() -> None:
    """Two loads of base, head and control take twice as long as one."""
    found = gates.looks(gates.normal(0.05), 0.1, RUNS, blocks=30)
    print(f"+10 %, 30 blocks: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert found["slower"] >= 0.95


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_5_percent_more_is_not_called_none(noise: Noise) -> None:
    found = gates.looks(noise, 0.05, RUNS)
    print(f"+5 %: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert found["no difference"] <= 0.05
    assert found["faster"] <= 0.001


@pytest.mark.parametrize(("hosts", "metric"), RECORDED)
def test_recorded_equal_cells_are_rarely_told_apart(hosts: str, metric: str) -> None:
    found = gates.looks(gates.drawn(metric, hosts), 0, RUNS)
    print(f"{hosts} {metric}, equal: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert 6 * (found["slower"] + found["faster"]) <= sequential.ERROR_RATE


@pytest.mark.parametrize(("hosts", "metric"), RECORDED)
def test_recorded_5_percent_more_is_not_called_none(hosts: str, metric: str) -> None:
    found = gates.looks(gates.drawn(metric, hosts), 0.05, RUNS)
    print(f"{hosts} {metric}, +5 %: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert found["no difference"] <= 0.05


def test_10_percent_more_cpu_is_found_at_saturation_on_quiet_hosts_within_20_minutes() -> None:
    found = gates.looks(gates.drawn("goodput", "quiet"), 0.1, RUNS, blocks=RECORDED_BLOCKS)
    print(f"quiet goodput, +10 %: {dict(found.of)}, {found.blocks:.0f} blocks")
    assert found["slower"] >= 0.9
