from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.analysis import claims, metrics
from loadlab.analysis.claims import Level
from loadlab.core import documents
from loadlab.core.errors import ResultError
from loadlab.core.model import (
    CellSummary,
    Claim,
    ClaimPart,
    Claims,
    ClaimStatement,
    Difference,
    NoiseFloor,
    PlannedStudy,
    PublishedFigures,
    PySpyProfile,
    Reason,
    Sample,
    StudyClaim,
    StudyErratum,
    StudyPublication,
    Summary,
)
from loadlab.planning import studies
from loadlab.report import words
from loadlab.report.words import claims as claim_words
from loadlab.report.words.quantities import levels, quantity
from tests.simulation import samples
from tests.unit import builders

Kind: TypeAlias = Literal["study", "lesson"]
LESSONS = sorted((builders.ROOT / "files" / "lessons").glob("*.yml"))


def cell(*goodputs: float, valid: bool = True, connections: int = 8, **more: Any) -> CellSummary:
    """A cell of summary.json with a repetition for each goodput; the rate asked for is 100."""
    validity = builders.valid() if valid else builders.void("steal")
    reps = [
        builders.repetition(repetition=number, goodput=one, validity=validity, **more)
        for number, one in enumerate(goodputs, 1)
    ]
    load = builders.load(rate=100, connections=connections)
    return builders.cell_summary("cell", reps, builders.cell(load=load))


def statement(**fields: Any) -> ClaimStatement:
    return ClaimStatement(**{"metric": "goodput", **fields})


def judge(
    claim: ClaimStatement | Sequence[ClaimStatement],
    cells: dict[str, CellSummary],
    kind: Kind = "study",
    controls: Sequence[claims.Control] = (),
) -> Claim:
    several = [claim] if isinstance(claim, ClaimStatement) else list(claim)
    named = {name: [Level(one)] for name, one in cells.items()}
    return claims.judge(StudyClaim(statement="so", all=several), named, kind, (), controls)


def part(found: Claim) -> ClaimPart:
    """The only part of a judged claim."""
    (one,) = found.parts
    assert one.outcome == found.outcome
    return one


def why(one: ClaimPart) -> str:
    return words.reason(one.reason) if one.reason else ""


def known(number: float | None) -> float:
    assert number is not None
    return number


AGAIN = cell(102, 99, 104, 101, 104.5)
FAST, SLOW = cell(100, 101, 102, 103, 104), cell(50, 51, 52, 53, 54)


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
    assert [part.statement.order for part in found.parts] == [list(one) for one in pairwise(names)]
    assert all(part.order == names for part in found.parts)
    assert found.outcome == outcome
    assert claim_words.failing_step(found) == by
    (line,) = claim_words.lines(judged(found))
    # One step is in it, and how many there are.
    assert line.count(" > ") == 1
    assert f"{by} (deciding step of {len(names) - 1})" in line
    # An order of two is its only step.
    for part in found.parts:
        alone = judge(part.statement, cells)
        assert alone.outcome == part.outcome
        assert (claim_words.failing_step(alone), alone.parts[0].order) == ("", None)


def judged(*found: Claim) -> Claims:
    return replace(claims.document(builders.summary(), STUDY), claims=list(found), unmeasured=[])


NUMBERS = st.lists(st.floats(1, 1e3), min_size=3, max_size=5)


@given(st.lists(NUMBERS, min_size=3, max_size=5))
@settings(max_examples=30)
def test_an_order_says_no_more_than_its_steps(samples: list[list[float]]) -> None:
    cells = {f"c{at}": cell(*values) for at, values in enumerate(samples)}
    whole = judge(statement(order=list(cells)), cells).outcome
    steps = {judge(statement(order=list(step)), cells).outcome for step in pairwise(cells)}
    assert whole == next(one for one in claims.OUTCOMES if one in steps)


def control(factor: float, server: str | None = None) -> claims.Control:
    """A cell and its A/A control, so many times as fast; on this host pair where one is given."""
    one, other = (cell(*(f * n for n in (100, 101, 102, 103, 104))) for f in (1, factor))
    return on("server" if server else None, one), on(server, other)


def on(server: str | None, one: CellSummary) -> CellSummary:
    return replace(one, repetitions=[replace(rep, server=server) for rep in one.repetitions])


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
    assert claim_words.figure(told) == "measured 101, 100 to 102 (75 % interval)"
    assert part(told).level == 0.75
    ratio = judge(statement(ratio=["fast", "slow"], at_least=1), {"fast": FAST, "slow": SLOW})
    assert "(95 % interval)" in claim_words.figure(ratio)
    ratio = judge(statement(ratio=["three", "slow"], at_least=1), {"three": three, "slow": SLOW})
    assert "(95 % interval)" in claim_words.figure(ratio)


def test_the_level_of_few_repetitions_is_told() -> None:
    told = levels()
    for text in ("3, 4 or 5 repetitions", "in 75, 88 or 94 %", "of more in 95 %"):
        assert text in told


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
    assert "is 0" in claim_words.figure(found)


def test_a_metric_is_a_path() -> None:
    load, errors = builders.load(), builders.repetition().errors
    assert errors is not None
    rep = builders.repetition(client=builders.client(EMFILE=3), telemetry=None)
    assert metrics.value(rep, load, "client.failures.EMFILE") == 3
    # What did not happen was counted 0 times.
    assert metrics.value(rep, load, "client.failures.EADDRNOTAVAIL") == 0
    assert metrics.value(rep, load, "telemetry.server.tcp.retransmits") is None
    assert metrics.value(rep, load, "load.rate") == 1000
    with pytest.raises(ResultError, match=r"goodness: a repetition has no 'goodness'"):
        metrics.value(rep, load, "goodness")
    with pytest.raises(ResultError, match="is not a number"):
        metrics.value(rep, load, "latency_basis")
    # At several numbers it ends in their sum; what was not recorded is not measured.
    rep = builders.repetition(errors=replace(errors, connect=2, read=3))
    assert metrics.value(rep, load, "errors") == 5
    assert metrics.value(rep, load, "telemetry.server.processes.nginx.cpu") is None
    # What was due and never sent had no right answer either.
    late = builders.repetition(scheduled=100, requests=60, ok=30)
    assert metrics.value(late, load, "failed_fraction") == pytest.approx(0.7)
    late = replace(late, scheduled=None)
    assert metrics.value(late, load, "failed_fraction") == pytest.approx(0.5)


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


def test_the_best_level_represents_a_sweep() -> None:
    sweep = [
        Level(cell(*goodputs, connections=connections, duration_s=seconds))
        for connections, seconds, goodputs in (
            (1, 5.0, (10, 11, 12)), (8, 6.0, (90, 91, 92)), (64, 7.0, (80,)),
        )
    ]  # fmt: skip

    def judged(one: ClaimStatement) -> ClaimPart:
        claim = StudyClaim(statement="so", all=[one])
        return part(claims.judge(claim, {"sweep": sweep}, "study"))

    best = judged(statement(cell="sweep", at_least=90, at_most=92))
    assert (best.outcome, best.value) == ("confirmed", 91)
    # Its other metrics are read there too.
    assert judged(statement(metric="duration_s", cell="sweep", at_least=1)).value == 6.0
    assert claims.representative([Level(cell(1, valid=False))]) is None


def test_the_level_of_a_sweep_is_chosen_in_other_blocks_than_it_is_tested_in() -> None:
    """Each of two levels has one lucky block, which does not count for it there."""
    low, high = Level(cell(200, 100, 100, 100)), Level(cell(99, 98, 300, 99))
    found = claims.sample([low, high], "goodput").by_block
    # Of the other three blocks low is the better one, always; of all blocks too.
    assert found == {1: 200, 2: 100, 3: 100, 4: 100}
    luck = [Level(cell(200, 100)), Level(cell(101, 300))]
    assert claims.sample(luck, "goodput").by_block == {1: 101, 2: 100}
    # With one block alone there is no other to choose in.
    once = [Level(cell(200)), Level(cell(101))]
    assert claims.sample(once, "goodput").by_block == {1: 200}


def test_the_best_of_many_equal_levels_is_not_too_fast() -> None:
    """tests/simulation has the bias of more runs."""
    before, after = samples.sweep_bias(levels=8, noise=0.05, repetitions=5, runs=60)
    assert before > 0.02
    assert abs(after) < 0.015


GROUP = PublishedFigures(
    title="Round 1",
    where="page 3",
    reference="fast",
    cells={"fast": {"goodput": 400.0}, "slow": {"goodput": 100.0}, "gone@8": {"goodput": 7.0}},
)
MISTAKE: dict[str, Any] = {"mistake": "w", "printed": "9", "corrected": "8"}
STUDY = PlannedStudy(
    kind="study",
    name="x",
    scale="local",
    description="d",
    claims=[StudyClaim(statement="so", all=[statement(ratio=["fast", "slow"], at_least=1.5)])],
    cells={"fast": ["fast"], "slow": ["slow"], "gone": ["gone-1", "gone-8"]},
    left_out_keys={},
    publication=StudyPublication(
        question="Which?",
        source={"title": "t", "date": "2015", "url": "https://example.org"},
        settings=[],
        rates=[],
        figures=[GROUP],
        errata=[StudyErratum(cell="slow", metric="goodput", **MISTAKE), StudyErratum(**MISTAKE)],
        differs=[],
    ),
)


def summary(**cells: CellSummary) -> Summary:
    found = [replace(one, cell_id=name.replace("_", "-")) for name, one in cells.items()]
    return replace(builders.summary(), cells=found)


def document(found: Summary, study: PlannedStudy = STUDY) -> Claims:
    """claims.json, which can be written."""
    judged = claims.document(found, study)
    documents.encode(judged)
    return judged


def test_published_and_measured_stand_side_by_side() -> None:
    judged = document(summary(fast=FAST, slow=SLOW, gone_8=cell(6)))
    (claim,) = judged.claims
    one = part(claim)
    assert one.published is not None
    assert (claim.outcome, one.published.value, one.published.where) == ("confirmed", 4.0, "page 3")
    assert claim_words.published(one) == "4.00"
    rows = {row.cell: row for row in judged.figures[0].rows}
    assert rows["slow"].published_ratio == pytest.approx(0.25)
    ratios = [(50 + n) / (100 + n) for n in range(5)]
    assert rows["slow"].measured_ratio.value == pytest.approx(statistics.geometric_mean(ratios))
    assert rows["slow"].measured.n == 5
    # A level of a sweep, by its connections.
    assert rows["gone@8"].measured.value == 6
    assert [one.measured and one.measured.value for one in judged.errata] == [52, None]
    assert judged.unmeasured == []
    assert "published 4.00; measured 1.96" in claim_words.lines(judged)[0]


def test_cells_without_a_valid_repetition_are_named() -> None:
    judged = document(summary(fast=FAST, slow=cell(1, valid=False)))
    assert [(one.cell, [why.code for why in one.reasons]) for one in judged.unmeasured] == [
        ("slow", ["steal"]), ("gone", ["cell_not_measured"]),
    ]  # fmt: skip
    assert judged.claims[0].outcome == "inconclusive"
    assert claim_words.lines(replace(judged, unmeasured=judged.unmeasured[1:]))[-1] == (
        "not measured: gone: it was not measured"
    )


def test_the_controls_of_a_summary_are_the_noise_of_its_claims() -> None:
    claim = StudyClaim(statement="so", all=[statement(order=["fast", "slow"])])
    study = replace(STUDY, claims=[claim])
    one, other = control(3)
    sample = Sample(n=5, median=None, low=None, high=None)
    rows = [
        NoiseFloor(
            metric=metric,
            cell_id="fast",
            control_id="fast-twin",
            base=sample,
            head=sample,
            difference=Difference(value=None, low=None, high=None),
            p=None,
            noise_floor=None,
        )
        for metric in ("goodput", "p50")
    ]
    measured = summary(fast=one, slow=cell(50, 50, 50), fast_twin=other)
    found = document(replace(measured, noise_floor=rows), study)
    assert found.claims[0].outcome == "inconclusive"
    # A control that was not measured says nothing.
    alone = replace(measured, cells=measured.cells[:2], noise_floor=rows)
    assert document(alone, study).claims[0].outcome == "confirmed"


def profile(**changes: Any) -> PySpyProfile:
    recorded = PySpyProfile(samples=1000, idle_fraction=0.4, depth_median=None, native=True, top=[])
    return replace(recorded, **changes)


def part_of(claim: ClaimStatement, **profiles: PySpyProfile | None) -> ClaimPart:
    """The judged statement on cells that were measured, and once more with py-spy."""
    shown = {name: cell(10, 11, 12) for name in profiles}
    several = {
        f"{name}_spied": replace(cell(1, py_spy=one), purpose="py_spy", base=name)
        for name, one in profiles.items()
    }
    study = replace(STUDY, claims=[StudyClaim(statement="so", all=[claim])])
    return part(document(summary(**shown, **several), study).claims[0])


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


@pytest.mark.parametrize(
    ("metric", "number", "shown"),
    [
        ("latency_us.mean", 65980, "66.0 ms"),
        ("failed_fraction", 0.8528, "85 %"),
        ("client.max_rss_bytes", 54992896, "52.4 MiB"),
        ("goodput", 1495, "1,495"),
        (None, 0.9251, "0.925"),
        (None, 4, "4.00"),
        ("errors", 0, "0"),
    ],
)
def test_quantities_are_written_with_their_units(
    metric: str | None, number: float, shown: str
) -> None:
    assert quantity(metric, number) == shown


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=9), st.floats(0.01, 100))
def test_a_bound_beyond_all_values_is_clear(values: list[float], factor: float) -> None:
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    # A quantile between equal values may round below them.
    least = min(values) * (1 - 1e-9)
    assert judge(statement(cell="one", at_least=least), cells).outcome == "confirmed"
    assert judge(statement(cell="one", at_most=min(values) / 2), cells).outcome == "refuted"
    both = judge(statement(ratio=["other", "one"], at_least=0), cells)
    assert part(both).value == pytest.approx(factor)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_metric_of_a_lesson_is_a_path(path: Path) -> None:
    study = studies.find(builders.ROOT, {"lesson": path.stem}, "lesson")
    assert study is not None
    spied = builders.repetition(py_spy=profile(), client=builders.client())
    for one in (one for claim in study.claims for one in claim.all):
        for metric in filter(None, (one.metric, one.over)):
            metrics.value(spied, builders.load(), metric)
