"""A matrix from its plan to its answer: a run is simulated with true goodputs, noise and voids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.analysis.matrix import blocks, document
from loadlab.analysis.verdict.blocks import Pace
from loadlab.core.model import MatrixVerdict, Result
from loadlab.report.words.matrix import sentences
from loadlab.scheduling import schedule
from loadlab.scheduling.plan import Plan
from loadlab.scheduling.records import Records, cell_records
from loadlab.scheduling.schedule import NextMeasurement
from tests.unit import builders

# Seconds of a measurement, and of the first set-up of a candidate, as files/methods.yml plans them.
EACH_S, SET_UP_S = 5.5, 15.0
BEGAN = 1_795_000_000.0


def plan(**given: object) -> Plan:
    return builders.plan(**{"framework": "flask", "endpoint": "hello", "matrix": 1, **given})


@dataclass
class Machine:
    """Measures what the plan asks for.

    ``truth``: candidate -> goodput, requests/s. ``noise``: standard deviation of a measurement;
    ``drift``: of a block. ``void``: probability of a void. ``failing``: candidates that fail.
    """

    plan: Plan
    truth: Mapping[str, float]
    noise: float = 0.03
    drift: float = 0.02
    void: float = 0.05
    failing: tuple[str, ...] = ()
    seed: int = 1
    now: float = BEGAN
    found: dict[str, list[Result]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.plan.matrix is not None
        self.random = np.random.default_rng(self.seed)
        self.names = {one.cell_id: one.name for one in self.plan.matrix.candidates}
        self.level = 0.0
        self.block = 0

    def records(self) -> Records:
        return {name: cell_records(several) for name, several in self.found.items()}

    def run(self) -> MatrixVerdict:
        began = self.now
        while True:
            kept = self.records()
            going = blocks.with_blocks_left(self.plan, kept, Pace(began, self.now, 0))
            item = schedule.next_item(going, kept, {}, None, 0)
            if item is None:
                assert schedule.outlook(going, kept, 0).position > sum(
                    len(several) for several in self.found.values()
                ) - 2 * len(self.failing)
                return document.build("run", self.plan, kept)
            self.found.setdefault(item.cell_id, []).append(self.measure(item))

    def measure(self, item: NextMeasurement) -> Result:
        of = item.base if item.purpose == "aa_control" else item.cell_id
        name = self.names[of or ""]
        self.now += EACH_S + (0 if item.cell_id in self.found else SET_UP_S)
        if item.block != self.block:
            self.block, self.level = item.block or 0, self.random.normal(0, self.drift)
        goodput = self.truth[name] * math.exp(self.level + self.random.normal(0, self.noise))
        void = self.random.random() < self.void
        fails = name in self.failing
        return replace(
            builders.result(),
            cell_id=item.cell_id,
            cell=item.cell,
            purpose=item.purpose,
            base=item.base,
            repetition=item.repetition,
            block=item.block,
            started=self.now - EACH_S,
            finished=self.now,
            goodput=None if fails else goodput,
            error="server: Start it: it does not start" if fails else None,
            validity=builders.void("steal") if void else builders.valid(),
            telemetry=None,
        )


def spread(made: Plan, seed: int) -> dict[str, float]:
    """Return a true goodput of each candidate: many near the best, as servers often are."""
    assert made.matrix is not None
    random = np.random.default_rng(seed)
    return {
        one.name: 1000 * float(one_of)
        for one, one_of in zip(
            made.matrix.candidates,
            random.uniform(0.4, 1.0, len(made.matrix.candidates)),
            strict=True,
        )
    }


def test_24_candidates_fit_into_half_an_hour_and_the_best_is_found() -> None:
    made, right, runs, seconds = plan(budget="30m"), 0, 60, []
    assert made.matrix is not None
    assert len(made.matrix.candidates) == 24
    for seed in range(runs):
        machine = Machine(made, spread(made, seed), seed=seed)
        found = machine.run()
        assert found.chosen is not None
        right += machine.truth[found.chosen] >= 0.95 * max(machine.truth.values())
        seconds.append(machine.now - BEGAN)
    assert right >= 0.95 * runs, right
    assert max(seconds) <= 1800, max(seconds)


def test_of_equal_candidates_the_simplest_is_taken() -> None:
    made = plan(budget="1h")
    assert made.matrix is not None
    truth = {one.name: 1000.0 for one in made.matrix.candidates}
    found = Machine(made, truth, noise=0.01).run()
    rows = {row.name: row for row in found.candidates}
    assert found.chosen is not None
    near = [found.best or "", *(lead.name for lead in found.leads if lead.within_noise)]
    assert len(near) > 1
    least = min(rows[name].workers * rows[name].threads for name in near)
    assert rows[found.chosen].workers * rows[found.chosen].threads == least


def test_the_best_is_above_its_servers_default_and_the_rule_by_what_is_true() -> None:
    made = plan(budget="1h")
    assert made.matrix is not None
    truth = {one.name: 500.0 for one in made.matrix.candidates}
    truth |= {"gunicorn-gthread-1x4": 1000.0, "gunicorn-gthread-3x1": 800.0}
    found = Machine(made, truth).run()
    assert found.best == found.chosen == "gunicorn-gthread-1x4"
    default, rule = found.over_own_default, found.over_rule
    assert default is not None
    assert rule is not None
    assert (default.name, rule.name) == ("gunicorn-sync-1x1", "gunicorn-gthread-3x1")
    for lead, true in ((default, 1.0), (rule, 0.25)):
        assert lead.low is not None
        assert lead.high is not None
        assert lead.low < true < lead.high
        assert lead.answer == "faster"
    assert "Take Gunicorn gthread, 1 worker of 4 threads: +" in sentences.sentence(found)


def test_candidate_that_does_not_start_is_dropped_with_its_reason() -> None:
    made = plan(budget="30m")
    failing = ("granian-1x1", "waitress-1x4")
    machine = Machine(made, spread(made, 3), failing=failing)
    found = machine.run()
    rows = {row.name: row for row in found.candidates}
    assert found.best not in (None, *failing)
    for name in failing:
        out = rows[name].out
        assert out is not None
        assert out.code == "candidate_failed"
        assert len(machine.found[rows[name].cell_id]) == 2
    assert "Dropped: Granian, 1 worker: failed twice in a row: server: Start it" in "\n".join(
        sentences.lines(found)
    )


def test_run_of_which_every_candidate_fails_has_no_answer() -> None:
    made = plan(budget="30m")
    truth = spread(made, 1)
    found = Machine(made, truth, failing=tuple(truth)).run()
    assert (found.best, found.chosen, found.leads) == (None, None, [])
    assert sentences.sentence(found) == "No candidate has a valid measurement."


def test_front_has_what_nothing_beats_in_goodput_p99_and_memory() -> None:
    figures = {
        "fast": (1000.0, 5.0, 90.0),
        "small": (500.0, 5.0, 30.0),
        "beaten": (500.0, 6.0, 30.0),
        "twin": (1000.0, 5.0, 90.0),
    }
    assert document._front(figures) == {"fast", "small", "twin"}


def test_budget_that_is_spent_before_the_contenders_leaves_the_best_of_the_rounds() -> None:
    made = plan(budget="30m")
    assert made.matrix is not None
    late = replace(made, matrix=replace(made.matrix, budget_s=60.0))
    found = Machine(late, spread(made, 5)).run()
    assert found.blocks == 0
    assert found.best == max(spread(made, 5).items(), key=lambda one: one[1])[0]
    assert "the budget ended with the rounds" in sentences.sentence(found)


@pytest.mark.parametrize("seed", [1, 2])
def test_interrupted_run_goes_on_with_the_same_rounds(seed: int) -> None:
    made = plan(budget="30m")
    machine = Machine(made, spread(made, seed), seed=seed)
    first = machine.run()
    measured = sum(map(len, machine.found.values()))
    again = machine.run()
    assert sum(map(len, machine.found.values())) >= measured
    assert [row.last_round for row in first.candidates if not row.contends] == [
        row.last_round for row in again.candidates if not row.contends
    ]
