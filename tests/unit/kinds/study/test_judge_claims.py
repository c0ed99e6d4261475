from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.kinds.study import judge_claims
from loadlab.kinds.study import words as claim_words
from loadlab.model import CellSummary, ClaimStatement, Reason
from tests.unit import builders
from tests.unit.kinds.study.claimed import (
    AGAIN,
    FAST,
    SLOW,
    Kind,
    cell,
    control,
    judge,
    judged,
    known,
    on,
    part,
    part_of,
    profile,
    statement,
    why,
)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"cell": "fast", "at_least": 99}, "confirmed"),
        ({"cell": "fast", "at_least": 100, "at_most": 104}, "confirmed"),
        ({"cell": "fast", "at_least": 102}, "inconclusive"),
        ({"cell": "fast", "at_most": 102}, "inconclusive"),
        ({"cell": "fast", "at_least": 105}, "refuted"),
        ({"cell": "fast", "at_most": 99}, "refuted"),
        ({"ratio": ["fast", "slow"], "at_least": 1.8, "at_most": 2.2}, "confirmed"),
        ({"ratio": ["fast", "slow"], "at_least": 2.2}, "refuted"),
        ({"ratio": ["slow", "fast"], "at_most": 0.6}, "confirmed"),
        ({"order": ["fast", "slow"]}, "confirmed"),
        ({"order": ["slow", "fast"]}, "refuted"),
        # As fast, give or take 2 %.
        ({"order": ["fast", "again"]}, "inconclusive"),
        # Twice as much, as fast over slow is of fast over slow: as often as itself.
        ({"ratio": ["fast", "slow"], "against": ["slow", "fast"], "at_least": 3}, "confirmed"),
        ({"ratio": ["fast", "slow"], "against": ["slow", "fast"], "at_most": 3}, "refuted"),
        ({"ratio": ["fast", "slow"], "against": ["again", "slow"], "at_least": 1}, "inconclusive"),
        # Against the rate that was offered, 100.
        ({"over": "load.rate", "cell": "fast", "at_least": 0.99}, "confirmed"),
        ({"over": "load.rate", "cell": "slow", "at_least": 0.99}, "refuted"),
    ],
)
def test_a_study_goes_by_intervals(fields: dict[str, Any], outcome: str) -> None:
    found = judge(statement(**fields), {"fast": FAST, "slow": SLOW, "again": AGAIN})
    assert found.outcome == outcome
    low, high = part(found).interval or (None, None)
    assert known(low) <= known(part(found).value) <= known(high)
    assert (part(found).reason is None) == (outcome == "confirmed")


@pytest.mark.parametrize(
    ("order", "outcome", "by"),
    [
        ("fast near far", "confirmed", ""),
        # The smallest ratio, of fast over near, is well told: that of near over wide is not.
        ("fast near wide", "inconclusive", "near > wide"),
        ("fast wide far", "inconclusive", "fast > wide"),
        # Refuted by a step, though another has a smaller ratio and is open.
        ("low-wide near fast far", "refuted", "near > fast"),
        ("far fast wide", "refuted", "far > fast"),
    ],
)
def test_every_step_of_an_order_is_judged(order: str, outcome: str, by: str) -> None:
    cells = {
        "fast": cell(*(105 * n for n in (0.998, 1, 1, 1, 1.002))),
        "near": cell(*(100 * n for n in (0.998, 1, 1, 1, 1.002))),
        "wide": cell(65, 70, 83, 105, 115),
        "low-wide": cell(60, 65, 90, 110, 130),
        "far": cell(20, 20, 21, 20, 20),
    }
    names = order.split()
    found = judge(statement(order=names), cells)
    assert [one.statement.order for one in found.parts] == [list(two) for two in pairwise(names)]
    assert all(one.order == names for one in found.parts)
    assert found.outcome == outcome
    assert claim_words.failing_step(found) == by
    (line,) = claim_words.lines(judged(found))
    assert line.startswith(f"{outcome}, by {by}: " if by else f"{outcome}: ")
    # An order of two is its only step.
    for one in found.parts:
        alone = judge(one.statement, cells)
        assert alone.outcome == one.outcome
        assert (claim_words.failing_step(alone), alone.parts[0].order) == ("", None)


NUMBERS = st.lists(st.floats(1, 1e3), min_size=3, max_size=5)


@given(st.lists(NUMBERS, min_size=3, max_size=5))
@settings(max_examples=30)
def test_an_order_says_no_more_than_its_steps(samples: list[list[float]]) -> None:
    cells = {f"c{at}": cell(*values) for at, values in enumerate(samples)}
    whole = judge(statement(order=list(cells)), cells).outcome
    steps = {judge(statement(order=list(step)), cells).outcome for step in pairwise(cells)}
    assert whole == next(one for one in judge_claims.OUTCOMES if one in steps)


CLOSE = cell(*(95 * n for n in (0.998, 1, 1, 1, 1.002)))

EVEN = cell(*(100 * n for n in (0.998, 1, 1, 1, 1.002)))


@pytest.mark.parametrize(
    ("fields", "quiet"),
    [
        ({"order": ["even", "close"]}, "confirmed"),
        ({"order": ["close", "even"]}, "refuted"),
        ({"ratio": ["even", "close"], "at_least": 1.02}, "confirmed"),
        ({"ratio": ["even", "close"], "at_least": 0.5, "at_most": 1.1}, "confirmed"),
        ({"ratio": ["even", "close"], "at_least": 1.1}, "refuted"),
        ({"ratio": ["even", "close"], "at_most": 1.0}, "refuted"),
        ({"ratio": ["even", "close"], "against": ["close", "even"], "at_least": 1.0}, "confirmed"),
    ],
)
def test_a_ratio_within_the_noise_of_a_bound_is_inconclusive(
    fields: dict[str, Any], quiet: str
) -> None:
    cells, claim = {"even": EVEN, "close": CLOSE}, statement(**fields)
    assert judge(claim, cells).outcome == quiet
    # In every block 1 % faster than its control.
    floor = 0.01
    still = judge(claim, cells, "study", [control(1.01)])
    wanted = (1 + floor) ** 2 - 1 if "against" in fields else floor
    assert part(still).noise_floor == pytest.approx(wanted)
    found = judge(claim, cells, "study", [control(1.25)])
    assert found.outcome == "inconclusive"
    assert "than the noise floor of " in why(part(found))
    # A lesson goes by what it measured once.
    assert judge(claim, cells, "lesson", [control(1.25)]).outcome == quiet


def test_the_floor_is_no_matter_of_one_cell_nor_of_a_bound_far_away() -> None:
    cells, loud = {"fast": FAST, "slow": SLOW}, [control(1.25)]
    alone = judge(statement(cell="fast", at_least=99), cells, "study", loud)
    assert (alone.outcome, part(alone).noise_floor) == ("confirmed", None)
    assert judge(statement(order=["fast", "slow"]), cells, "study", loud).outcome == "confirmed"


def test_the_floor_is_of_the_claims_own_metric_and_of_a_like_load() -> None:
    """A cell and a control whose goodput is the same, and whose answers differ by half."""

    def at(p99: float, endpoint: str = "index") -> CellSummary:
        latency = builders.repetition().latency_us
        assert latency is not None
        made = cell(100, 100, 100, 100, 100, latency_us=replace(latency, p99=p99))
        return replace(made, cell=replace(made.cell, endpoint=endpoint))

    cells = {"a": at(1300.0), "b": at(1000.0)}
    claim = statement(metric="latency_us.p99", order=["a", "b"])
    loud = at(1000.0), at(1500.0)
    assert judge(claim, cells, "study", [loud]).outcome == "inconclusive"
    # Another load is gone by only where there is no control of this one.
    quiet = at(1000.0), at(1000.0)
    loud = at(1000.0, "agents"), at(1500.0, "agents")
    assert judge(claim, cells, "study", [loud]).outcome == "inconclusive"
    assert judge(claim, cells, "study", [loud, quiet]).outcome == "confirmed"


def test_what_two_pairs_of_hosts_differ_by_is_noise_between_them() -> None:
    cells = {"even": on("server", EVEN), "close": on("server2", CLOSE)}
    claim = statement(order=["even", "close"])
    own, far = control(1, "server"), control(1.25, "server2")
    assert judge(claim, cells, "study", [own, far]).outcome == "inconclusive"
    # On one pair the other is no matter.
    alone = {"even": on("server", EVEN), "close": on("server", CLOSE)}
    assert judge(claim, alone, "study", [own, far]).outcome == "confirmed"
    # Alike pairs tell stacks apart as one does; where no control says so, nothing does.
    assert judge(claim, cells, "study", [own, control(1, "server2")]).outcome == "confirmed"
    found = judge(claim, cells, "study", [own])
    reason = Reason(code="no_control_between_pairs")
    assert (found.outcome, part(found).reason) == ("inconclusive", reason)


@given(NUMBERS, NUMBERS, st.floats(0.5, 2), st.floats(1, 1.5))
@settings(max_examples=30)
def test_noise_never_decides(
    above: list[float], below: list[float], bound: float, factor: float
) -> None:
    """Whatever a control differs by, a claim comes out as without it, or inconclusive."""
    cells = {"above": cell(*above), "below": cell(*below)}
    claim = statement(ratio=["above", "below"], at_least=bound)
    without = judge(claim, cells).outcome
    found = judge(claim, cells, "study", [control(factor)])
    one = part(found)
    far = abs(known(one.value) - bound) > known(one.noise_floor) * bound
    assert found.outcome == (without if far else "inconclusive")


def test_intervals_are_told_with_the_level_that_they_have() -> None:
    three = cell(100, 101, 102)
    told = judge(statement(cell="three", at_least=1), {"three": three})
    assert claim_words.measured(told.parts[0]) == "measured 101, 100 to 102 (75 % interval)"
    assert part(told).level == 0.75
    ratio = judge(statement(ratio=["fast", "slow"], at_least=1), {"fast": FAST, "slow": SLOW})
    assert "(95 % interval)" in claim_words.measured(ratio.parts[0])
    ratio = judge(statement(ratio=["three", "slow"], at_least=1), {"three": three, "slow": SLOW})
    assert "(95 % interval)" in claim_words.measured(ratio.parts[0])


def test_a_study_of_two_repetitions_decides_nothing_and_a_lesson_of_one_does() -> None:
    claim = statement(cell="one", at_least=1)
    found = judge(claim, {"one": cell(5, 6)})
    assert (found.outcome, part(found).interval) == ("inconclusive", None)
    assert why(part(found)) == "2 valid repetitions, 3 are needed for an interval"
    assert judge(claim, {"one": cell(5)}, "lesson").outcome == "confirmed"
    assert judge(claim, {"one": cell(0.5)}, "lesson").outcome == "refuted"


def test_void_repetitions_and_cells_that_were_not_measured_decide_nothing() -> None:
    void = cell(5, 6, 7, valid=False)
    claim = statement(ratio=["one", "void"], at_least=0.1)
    found = judge(claim, {"one": cell(5), "void": void})
    reason = Reason(code="cells_not_valid", facts={"cells": ["void"]})
    assert (found.outcome, part(found).reason) == ("inconclusive", reason)
    assert judge(statement(cell="gone", at_least=0), {}, "lesson").outcome == "inconclusive"


@pytest.mark.parametrize("kind", ["study", "lesson"])
def test_a_ratio_over_nothing_is_inconclusive(kind: Kind) -> None:
    claim = statement(ratio=["a", "b"], at_least=1)
    found = judge(claim, {"a": FAST, "b": cell(0, 0, 0)}, kind)
    assert (found.outcome, part(found).value) == ("inconclusive", None)
    assert "is 0" in claim_words.measured(found.parts[0])


BELOW_9, BELOW_52, BELOW_60 = (statement(cell="slow", at_most=most) for most in (9, 52, 60))

VOID = statement(cell="void", at_most=9)


@pytest.mark.parametrize(
    ("others", "outcome", "codes"),
    [
        ([BELOW_60], "confirmed", [None]),
        ([BELOW_52], "inconclusive", ["across_bound"]),
        ([BELOW_9], "refuted", ["above_bound"]),
        # What is refuted stays so, whatever else is inconclusive.
        ([VOID, BELOW_9], "refuted", ["cells_not_valid", "above_bound"]),
        ([VOID], "inconclusive", ["cells_not_valid"]),
    ],
)
def test_of_several_statements_all_must_hold(
    others: list[ClaimStatement], outcome: str, codes: list[str | None]
) -> None:
    cells = {"fast": FAST, "slow": SLOW, "void": cell(1, 2, 3, valid=False)}
    found = judge([statement(cell="fast", at_least=50), *others], cells)
    assert found.outcome == outcome
    assert [one.reason and one.reason.code for one in found.parts] == [None, *codes]


def test_a_profile_has_the_sampling_error_of_its_samples() -> None:
    """It is read once: of the cell's repetition that was profiled."""
    claim = statement(metric="py_spy.idle_fraction", cell="fast", at_least=0.3)
    for count, fraction, outcome in (
        (1000, 0.4, "confirmed"), (1000, 0.31, "inconclusive"), (100, 0.35, "inconclusive"),
        (10_000, 0.35, "confirmed"), (1000, 0.2, "refuted"),
    ):  # fmt: skip
        one = part_of(claim, fast=profile(idle_fraction=fraction, samples=count), slow=None)
        assert one.outcome == outcome, (count, fraction)
        assert one.level == pytest.approx(0.95)
    one = part_of(replace(claim, cell="slow"), fast=profile(), slow=None)
    assert why(one) == "py_spy.idle_fraction was not measured of slow"


def test_two_profiles_are_told_apart_beyond_their_sampling_error() -> None:
    order = statement(metric="py_spy.idle_fraction", order=["fast", "slow"])
    few, many = (profile(samples=n) for n in (200, 20_000))
    less = profile(idle_fraction=0.36, samples=20_000)
    none = profile(idle_fraction=0.0, samples=500)
    assert part_of(order, fast=few, slow=less).outcome == "inconclusive"
    one = part_of(order, fast=many, slow=less)
    assert one.outcome == "confirmed"
    assert one.level == pytest.approx(0.9)
    assert part_of(order, fast=less, slow=many).outcome == "refuted"
    # A ratio over a fraction that may be 0 has no upper bound.
    assert part_of(order, fast=many, slow=replace(none, samples=5)).outcome == "inconclusive"
    one = part_of(order, fast=many, slow=none)
    assert (one.outcome, one.value) == ("confirmed", None)
    low, high = one.interval or (None, 0)
    assert (round(known(low)), high) == (53, None)
    assert claim_words.measured(one).startswith("at least 53 times")
    idle = replace(few, idle_fraction=0.0)
    assert part_of(order, fast=idle, slow=many).outcome == "refuted"


def test_profiles_have_the_interval_of_their_depth() -> None:
    claim = statement(metric="py_spy.depth_median", ratio=["fast", "slow"], at_most=0.75)
    shallow = profile(depth_median=15.0, depth_interval=[14, 16])
    deep = profile(depth_median=30.0, depth_interval=[25, 33])
    assert part_of(claim, fast=shallow, slow=deep).outcome == "confirmed"
    wide = replace(deep, depth_interval=[20, 33])
    assert part_of(claim, fast=shallow, slow=wide).outcome == "inconclusive"
    unknown = replace(deep, depth_interval=None)
    one = part_of(claim, fast=shallow, slow=unknown)
    assert (one.outcome, one.reason) == ("inconclusive", Reason(code="no_sample_interval"))


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=9), st.floats(0.1, 10), st.data())
def test_a_claim_on_its_own_figures_is_never_refuted(
    values: list[float], factor: float, data: st.DataObject
) -> None:
    """Whatever the values: bounds around what was measured hold, and far from it they do not."""
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    spread = max(values) / min(values) * (1 + 1e-9)
    form: dict[str, Any] = data.draw(
        st.sampled_from([{"ratio": ["other", "one"]}, {"over": "goodput", "cell": "one"}])
    )
    middle = factor if "ratio" in form else 1
    around = {"at_least": middle / spread, "at_most": middle * spread}
    assert judge(statement(**form, **around), cells).outcome == "confirmed"
    far = statement(**form, at_least=middle * spread * 1.01)
    assert judge(far, cells).outcome == "refuted"


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=9), st.floats(0.01, 100))
def test_a_bound_beyond_all_values_is_clear(values: list[float], factor: float) -> None:
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    # A quantile between equal values may round below them.
    least = min(values) * (1 - 1e-9)
    assert judge(statement(cell="one", at_least=least), cells).outcome == "confirmed"
    assert judge(statement(cell="one", at_most=min(values) / 2), cells).outcome == "refuted"
    both = judge(statement(ratio=["other", "one"], at_least=0), cells)
    assert part(both).value == pytest.approx(factor)
