"""Simulated runs of a machine, and how often the lab's methods are right about them."""

import dataclasses
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import scipy
from msgspec import structs
from msgspec.structs import replace

from loadlab.history import series
from loadlab.history.past_runs import Measured, PastRun
from loadlab.history.reproduction import Basis
from loadlab.kinds.study import sampling
from loadlab.kinds.study.sampling import Level
from loadlab.model import CellSummary, Recipe
from loadlab.results import metrics
from loadlab.run.methods import comparison_rule
from loadlab.stats import histograms, inference, paired, percentiles, unpaired
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.history import pasts

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def cells(
    random: np.random.Generator, count: int, drift: float, noise: float, ratios: list[float]
) -> list[dict[int, float]]:
    """Return cells of one run by block; the machine drifts from block to block.

    ``drift`` and ``noise`` are standard deviations of logarithms, ``ratios`` the cells' true speed.
    """
    machine = random.normal(0, drift, count)
    return [
        dict(
            enumerate((1000 * ratio * np.exp(machine + random.normal(0, noise, count))).tolist(), 1)
        )
        for ratio in ratios
    ]


def paired_coverage(
    count: int, ratio: float, drift: float, noise: float, runs: int
) -> tuple[float, float]:
    """Return how often the interval by blocks holds the true difference, and how often p says that
    there is one."""
    random = np.random.default_rng(count)
    held = found = 0
    for _ in range(runs):
        one = paired.difference(*cells(random, count, drift, noise, [1, ratio]))
        assert one.low is not None
        assert one.high is not None
        assert one.p is not None
        held += one.low <= ratio - 1 <= one.high
        found += one.p <= 0.05
    return held / runs, found / runs


def latencies(random: np.random.Generator, kind: str, count: int) -> Floats:
    """Return latencies in µs, one by one, in the order of the requests.

    queue: the time in an M/M/1 queue that is busy 80 % of the time. autoregressive: lognormal, with
    a correlation of 0.95 between neighbours.
    """
    early = 2000
    if kind == "queue":
        served = random.exponential(0.8, count + early)
        steps = np.r_[0.0, served[:-1] - random.exponential(1, count + early - 1)]
        ahead = np.cumsum(steps)
        waited = ahead - np.minimum.accumulate(ahead)
        return np.asarray(1e4 * (waited + served)[early:])
    shocks = random.normal(0, (1 - 0.95**2) ** 0.5, count + early)
    logs = scipy.signal.lfilter([1.0], [1.0, -0.95], shocks)
    return np.asarray(1e4 * np.exp(logs[early:]))


def true_percentile(kind: str, fraction: float) -> float:
    """Return the percentile of the distribution that latencies() draws from, µs."""
    if kind == "queue":
        return float(-1e4 * 0.8 / (1 - 0.8) * np.log(1 - fraction))
    return float(1e4 * np.exp(scipy.stats.norm.ppf(fraction)))


def percentile_coverage(kind: str, name: str, size: int, repetitions: int, runs: int) -> float:
    """Return how often the interval of a percentile, where there is one, holds the true one."""
    random = np.random.default_rng(size + repetitions)
    true = true_percentile(kind, histograms.PERCENTILES[name] / 100)
    held = shown = 0
    for _ in range(runs):
        # To 100 µs, which is far less than the width of an interval.
        several = [
            histograms.count_values(100 * (latencies(random, kind, size) / 100).round().astype(int))
            for _ in range(repetitions)
        ]
        found = getattr(percentiles.of_counts(several), name)
        if found.reason is None:
            shown += 1
            held += found.low <= true <= found.high
    # Neighbours that are alike for long look like stalls of few repetitions.
    assert shown >= (0.5 if kind == "autoregressive" else 0.8) * runs
    return held / shown


# Edges of classes of latencies, µs, each 0.5 % wide.
EDGES = np.geomspace(200, 3e8, 2600)
_MIDDLES = np.sqrt(EDGES[1:] * EDGES[:-1]).astype(np.int64)
REQUESTS, LOAD_S = 12_000, 10.0


def stalled(random: np.random.Generator, stalls: float, mean_s: float) -> tuple[Integers, int]:
    """Return a repetition's requests by class of latency, and its number of stalls.

    Latencies are lognormal around 1 ms with a p99 of 3.2 ms. A number of ``stalls`` on average
    stops the server, each for an exponential time of ``mean_s``: the requests that were due in it
    wait for its end.
    """
    lengths = random.exponential(mean_s, random.poisson(stalls))
    lengths = lengths[np.cumsum(lengths) < LOAD_S]
    counts = np.zeros(EDGES.size - 1, np.int64)
    for length in lengths:
        below = np.clip((EDGES - 1e3) / (1e6 * length), 0, 1) * length * REQUESTS / LOAD_S
        counts += np.diff(np.round(below)).astype(np.int64)
    base = np.diff(scipy.special.ndtr(np.log(EDGES / 1e3) / 0.5))
    rest = random.multinomial(max(0, REQUESTS - counts.sum()), base / base.sum())
    return counts + rest, len(lengths)


@dataclass(frozen=True)
class StallCoverage:
    """Shares of the runs: with a stall in no repetition; of the others, with an interval of the p99
    that holds the true one, and without an interval as stalls are too few."""

    unmet: float
    held: float
    refused: float


def stall_coverage(stalls: float, mean_s: float, repetitions: int, runs: int) -> StallCoverage:
    """Return what the intervals of the p99 say of a server with so many stalls a repetition."""
    random = np.random.default_rng(int(100 * stalls) + repetitions)
    whole = sum(
        (stalled(random, stalls, mean_s)[0] for _ in range(4000)),
        np.zeros(EDGES.size - 1, np.int64),
    )
    ranks = np.cumsum(whole)
    true = _MIDDLES[np.searchsorted(ranks, 0.99 * ranks[-1])]
    unmet = held = refused = 0
    for _ in range(runs):
        rows = [stalled(random, stalls, mean_s) for _ in range(repetitions)]
        if stalls and not any(number for _, number in rows):
            unmet += 1
            continue
        p99 = percentiles.of_counts([(_MIDDLES, counts) for counts, _ in rows]).p99
        refused += p99.reason is not None and p99.reason.code == "few_stalls"
        held += p99.low is not None and p99.low <= int(true) <= present(p99.high)
    met = runs - unmet
    return StallCoverage(unmet / runs, held / met, refused / met)


def sittings(runs_a_side: int, between: float, runs: int) -> tuple[float, float]:
    """Return how often equal sides are called different: by the runs of each side, and by the
    repetitions of one run a side (Welch), the earlier method. Five repetitions with a noise of 1 %.

    ``between`` is the standard deviation between sittings, a fraction.
    """
    random = np.random.default_rng(runs_a_side)
    apart = before = 0
    for _ in range(runs):
        speeds = 1000 * np.exp(random.normal(0, between, (2, runs_a_side, 1)))
        values = speeds * np.exp(random.normal(0, 0.01, (2, runs_a_side, 5)))
        base, head = np.median(values, axis=2)
        apart += (unpaired.difference(base.tolist(), head.tolist()).p or 1) <= 0.05
        first, second = values[:, 0].tolist()
        before += (unpaired.difference(first, second).p or 1) <= 0.05
    return apart / runs, before / runs


def swept(random: np.random.Generator, levels: int, noise: float, repetitions: int) -> list[Level]:
    """Return a sweep whose levels are equally fast, 1,000 requests/s."""
    values = 1000 * np.exp(random.normal(0, noise, (levels, repetitions)))
    return [Level(_cell(one.tolist())) for one in values]


@cache
def _recorded() -> CellSummary:
    return builders.cell_summary("cell", [builders.repetition()])


def _cell(goodputs: list[float]) -> CellSummary:
    (rep,) = _recorded().repetitions
    reps = [replace(rep, repetition=number, goodput=one) for number, one in enumerate(goodputs, 1)]
    return replace(_recorded(), repetitions=reps)


def sweep_bias(levels: int, noise: float, repetitions: int, runs: int) -> tuple[float, float]:
    """Return by how much a claim's median of a sweep is too high, a fraction: as before, where the
    best level was chosen and tested in the same blocks, and now."""
    random = np.random.default_rng(levels)
    before, after = [], []
    for _ in range(runs):
        sweep = swept(random, levels, noise, repetitions)
        best = sampling.representative(sweep)
        assert best is not None
        before.append(np.median(metrics.values(best.cell, "goodput")))
        after.append(np.median([*sampling.sample(sweep, "goodput").by_block.values()]))
    return float(np.mean(before)) / 1000 - 1, float(np.mean(after)) / 1000 - 1


def conclusions(count: int, ratio: float, noise: float, runs: int) -> dict[str, float]:
    """Return how often each conclusion is drawn from blocks with a true ratio; drift 5 %."""
    random = np.random.default_rng(count)
    margin = comparison_rule().margin
    found: dict[str, float] = {}
    for _ in range(runs):
        one = paired.difference(*cells(random, count, 0.05, noise, [1, ratio]))
        assert one.p is not None
        word = inference.decide(one, one.p, None, margin).conclusion
        found[word] = found.get(word, 0) + 1 / runs
    return found


def ablation_power(keys: int, count: int, effect: float, noise: float, runs: int) -> float:
    """Return how often the only key with an effect is found: one of 3 rows of each key has it."""
    random = np.random.default_rng(keys)
    found = 0
    for _ in range(runs):
        logs = random.normal(0, noise, (2, 3 * keys, count))
        logs[1, 0] += np.log1p(effect)
        apart = logs[1] - logs[0]
        # Of all rows at once, as paired.difference() does of one.
        error = apart.std(ddof=1, axis=1) / count**0.5
        p = 2 * scipy.stats.t.sf(abs(apart.mean(axis=1)) / error, count - 1)
        found += inference.corrected(p.tolist())[0] <= inference.ALPHA
    return found / runs


def histories(runs: int, between: float, step: float, number: int) -> tuple[float, float]:
    """Return how often runs are marked before a step of this fraction, and how often it is found
    within its first ten runs.

    Each history has ``runs`` runs of one cell, ten of them after the step. ``between`` is the
    standard deviation between sittings, a fraction.
    """
    random = np.random.default_rng(runs)
    false = found = 0
    for _ in range(number):
        speeds = np.exp(random.normal(0, between, runs))
        speeds[-10:] *= 1 + step
        (cell,) = series.build([_past(at, one) for at, one in enumerate(speeds)]).cells
        false += any(one.at < runs - 10 for one in cell.steps)
        found += any(one.at >= runs - 10 for one in cell.steps)
    return false / number, found / number


@cache
def _measured() -> Measured:
    manifest = builders.manifest()
    recipe = Recipe(
        given_options={},
        options=builders.plan().options,
        inputs={},
        thresholds=structs.asdict(builders.thresholds()),
        lab=manifest.lab,
        pins={},
        locks={},
    )
    basis = Basis(recipe, manifest.hosts, manifest.controller, [])
    return Measured(builders.summary(), manifest, basis)


def _past(number: int, slower: float) -> PastRun:
    """Return a run of one cell whose latencies are so many times as long."""
    known = _measured()
    (cell,) = (one for one in known.summary.cells if one.cell_id == builders.NAME)
    summary = replace(known.summary, cells=[pasts.slowed(cell, slower)])
    return PastRun(
        f"run-{number}", "finished", measured=dataclasses.replace(known, summary=summary)
    )
