from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.model import LedgerRow, PlannedStudy, Reason, SkippedTuning, TuningLedger
from loadlab.plan import ablation
from loadlab.plan.modes.levels import Fixed
from loadlab.report.words import planned_words
from loadlab.results.comparisons import comparison
from tests.unit import builders
from tests.unit.results.comparisons.test_comparison import asked, cell

STUDY = builders.planned_study()
WITHOUT = "production-without-a.b"
ABLATION = replace(STUDY, ablate="production", left_out_keys={WITHOUT: "a.b"})
SO_BEFORE = {"state": "already", "original": "1"}


def ledger(*rows: dict[str, Any]) -> TuningLedger:
    """A ledger with one host for each row."""
    recorded = builders.ledger()
    row: LedgerRow = next(iter(recorded.hosts.values()))[0]
    row = replace(row, key="a.b", after="1", original=None)
    hosts = {f"host{n}": [replace(row, **changed)] for n, changed in enumerate(rows)}
    return replace(recorded, profile="production", hosts=hosts)


def nothing(states: str) -> Reason:
    return Reason(code="key_changes_nothing", facts={"states": states.split(", ")})


@pytest.mark.parametrize(
    ("rows", "states"),
    [
        ([{"state": "absent"}, {"state": "absent"}], "absent"),
        ([{"state": "not_namespaced"}, {"state": "read_only"}], "not_namespaced, read_only"),
        ([SO_BEFORE, {"state": "rejected"}], "already, rejected"),
        ([{"state": "kept"}, {"state": "kept"}], "kept"),
        # As asked, and the lab's own doing: an earlier profile's, or not known.
        ([{"state": "already", "original": "2"}], None),
        ([{"state": "already"}], None),
        # One host that takes it is enough.
        ([{"state": "absent"}, {"state": "applied", "original": "0"}], None),
        ([{"state": "clamped", "original": "0"}], None),
    ],
)
def test_idle_finds_a_key_that_changes_nothing(rows: list[Any], states: str | None) -> None:
    reasons = ablation.idle(ABLATION, [ledger(*rows)])
    assert reasons == ({} if states is None else {WITHOUT: nothing(states)})


def test_idle_needs_all_pairs_to_agree() -> None:
    elsewhere = ledger({"state": "applied", "original": "0"})
    assert ablation.idle(ABLATION, [ledger(SO_BEFORE), elsewhere]) == {}


def test_idle_goes_by_the_ledger_of_the_whole_profile() -> None:
    other = replace(ledger({"state": "applied", "original": "0"}), profile=WITHOUT)
    assert ablation.idle(ABLATION, [ledger(SO_BEFORE), other]) == {WITHOUT: nothing("already")}


@pytest.mark.parametrize("other", [None, STUDY, replace(STUDY, kind="lesson")])
def test_idle_is_empty_without_an_ablation(other: PlannedStudy | None) -> None:
    assert ablation.idle(other, [ledger(SO_BEFORE)]) == {}


def test_skipped_tunings_are_named_once_in_the_plans_order() -> None:
    tunings = ("production", "production-without-c", WITHOUT, WITHOUT)
    items = [builders.item(cell=builders.cell(tuning=tuning)) for tuning in tunings]
    keys = {WITHOUT: "a.b", "production-without-c": "c"}
    plan = replace(
        builders.plan(),
        experiments=[Fixed(item=item) for item in items],
        study=replace(ABLATION, left_out_keys=keys),
    )
    names = (WITHOUT, "production-without-c", "other")
    idle = dict.fromkeys(names, nothing("absent"))
    assert ablation.without_idle(plan, idle).experiments == plan.experiments[:1]
    assert ablation.skipped(plan, idle) == [
        SkippedTuning(tuning=tuning, key=keys[tuning], reason=nothing("absent"))
        for tuning in ("production-without-c", WITHOUT)
    ]


def test_the_power_of_an_ablation_is_planned_and_then_measured() -> None:
    planned = ablation.planned_power(35)
    assert (planned.rows, planned.repetitions, planned.measured) == (105, 13, False)
    assert "13 repetitions find it in 80 % of runs" in planned_words.ablation_power(planned)
    # Seven blocks with a noise of 1 % a repetition: a ratio of two has 1.4 %.
    random = np.random.default_rng(3)
    heads = {
        f"head{index}": cell(f"head{index}", (1000 * np.exp(random.normal(0, 0.01, 7))).tolist())
        for index in range(12)
    }
    base = cell("stock", (1000 * np.exp(random.normal(0, 0.01, 7))).tolist())
    compared, _ = comparison.build([base, *heads.values()], [asked(name) for name in heads], [])
    power = builders.present(ablation.measured_power(ABLATION, compared))
    assert (power.rows, power.measured) == (36, True)
    assert power.noise == pytest.approx(0.01, rel=0.25)
    assert power.repetitions is not None
    assert power.repetitions < 10
    assert "as measured here" in planned_words.ablation_power(power)
    assert ablation.measured_power(STUDY, compared) is None
    assert ablation.measured_power(ABLATION, []) is None


def test_the_plan_of_the_ablation_says_what_it_can_tell() -> None:
    planned = builders.present(builders.plan(study="ablation", framework=None).study)
    assert planned.ablation_power == ablation.planned_power(len(planned.left_out_keys))
    assert builders.plan().study is None
