"""How often the lab's statistics are right, by 2,000 simulated runs each.

docs/statistics.md has the figures beside those of the methods before. `make test-all` runs these;
tests/unit has a small version of most.
"""

import math

import pytest

from tests.simulation import samples

RUNS = 2000
# Three standard errors of a share of 0.95 in so many runs.
NEAR = 0.015


@pytest.mark.parametrize("count", [3, 5, 7, 10])
def test_a_paired_interval_holds_the_true_difference(count: int) -> None:
    held, found = samples.paired_coverage(count, 1.06, drift=0.05, noise=0.02, runs=RUNS)
    print(f"paired, {count} blocks: held {held:.3f}, +6 % found {found:.3f}")
    assert held == pytest.approx(0.95, abs=NEAR)
    assert found >= {3: 0.4, 5: 0.88, 7: 0.98, 10: 0.99}[count]


@pytest.mark.parametrize(
    ("ratio", "noise", "count", "most"),
    [(1.1, 0.1, 5, 0.01), (1.1, 0.02, 5, 0.001), (1.05, 0.02, 5, 0.035), (1.05, 0.01, 7, 0.035)],
)
def test_a_true_difference_is_rarely_called_none(
    ratio: float, noise: float, count: int, most: float
) -> None:
    found = samples.conclusions(count, ratio, noise, RUNS)
    print(f"true {ratio - 1:+.0%}, noise {noise:.0%}, {count} blocks: {found}")
    assert found.get("no difference", 0) <= most


@pytest.mark.parametrize(("noise", "least"), [(0.01, 0.9), (0.02, 0.4)])
def test_equal_cells_are_called_so(noise: float, least: float) -> None:
    found = samples.conclusions(7, 1.0, noise, RUNS)
    print(f"equal, noise {noise:.0%}, 7 blocks: {found}")
    assert found["no difference"] >= least
    assert found.get("higher", 0) + found.get("lower", 0) <= 0.05 + NEAR


@pytest.mark.parametrize("between", [0.01, 0.03])
@pytest.mark.parametrize("runs_a_side", [3, 5])
def test_equal_sittings_are_not_told_apart(runs_a_side: int, between: float) -> None:
    after, before = samples.sittings(runs_a_side, between, RUNS)
    one, _ = samples.sittings(1, between, 100)
    print(f"{runs_a_side} runs a side, {between:.0%} between: {before:.3f} -> {after:.3f}")
    assert one == 0
    assert after <= 0.06
    assert before > 0.15


@pytest.mark.parametrize(
    ("between", "step", "most", "least"), [(0.01, 0.1, 0.02, 0.98), (0.03, 0.2, 0.3, 0.95)]
)
def test_steps_are_found_and_equal_runs_rarely_marked(
    between: float, step: float, most: float, least: float
) -> None:
    false, found = samples.histories(40, between, step, 100)
    print(f"40 runs, {between:.0%} between, {step:+.0%}: marked {false:.3f}, found {found:.3f}")
    assert false <= most
    assert found >= least


@pytest.mark.parametrize(
    ("kind", "name", "size", "repetitions", "least"),
    [("queue", "p50", 2000, 5, 0.92), ("queue", "p99", 10_000, 5, 0.9),
     ("autoregressive", "p50", 2000, 5, 0.92), ("autoregressive", "p99", 10_000, 5, 0.92),
     ("autoregressive", "p99", 10_000, 3, 0.92), ("queue", "p99", 10_000, 3, 0.9)],
)  # fmt: skip
def test_a_percentiles_interval_holds_the_true_one(
    kind: str, name: str, size: int, repetitions: int, least: float
) -> None:
    held = samples.percentile_coverage(kind, name, size, repetitions, RUNS)
    print(f"{name} of {kind}, {repetitions} x {size}: held {held:.3f}")
    assert held >= least


@pytest.mark.parametrize(
    ("stalls", "mean_s", "repetitions"),
    [
        (0, 0.1, 3), (0, 0.1, 10),
        (0.25, 0.1, 3), (0.25, 0.1, 5), (0.25, 0.1, 10), (0.25, 0.3, 3),
        (0.75, 0.1, 3), (0.75, 0.1, 5), (0.75, 0.1, 10), (0.75, 0.3, 3),
        (3, 0.1, 3), (3, 0.1, 5), (3, 0.1, 10), (3, 0.3, 3),
    ],
)  # fmt: skip
def test_the_interval_of_a_p99_with_stalls_holds_the_true_one_or_there_is_none(
    stalls: float, mean_s: float, repetitions: int
) -> None:
    """Of runs that met a stall; no interval knows of one that no repetition met."""
    found = samples.stall_coverage(stalls, mean_s, repetitions, RUNS // 2)
    print(f"{stalls} stalls of {mean_s} s, {repetitions} repetitions: {found}")
    assert found.held + found.refused >= 0.93 - NEAR
    assert found.refused <= (1 if stalls else 0.03)
    assert found.unmet == pytest.approx(math.exp(-stalls * repetitions) if stalls else 0, abs=0.05)


def test_the_best_level_of_a_sweep_is_not_too_fast() -> None:
    before, after = samples.sweep_bias(levels=8, noise=0.05, repetitions=5, runs=RUNS)
    print(f"8 equal levels: {before:+.3%} -> {after:+.3%}")
    assert before > 0.025
    # The mean is not biased; the median of five is, a little.
    assert abs(after) < 0.006


@pytest.mark.parametrize(("count", "least", "most"), [(13, 0.76, 0.95), (7, 0.0, 0.3)])
def test_an_ablation_finds_one_key_from_as_many_repetitions_as_it_says(
    count: int, least: float, most: float
) -> None:
    """35 keys, an effect of 5 %, a noise of 2 %: stats/paired.py says 13."""
    found = samples.ablation_power(35, count, effect=0.05, noise=0.02, runs=RUNS)
    print(f"35 keys, {count} blocks: found {found:.3f}")
    assert least <= found <= most
