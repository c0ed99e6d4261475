import statistics

import pytest
from msgspec.structs import replace

from loadlab.kinds.study import words as claim_words
from loadlab.model import SaturationGoodput, ScaledRate, StudyClaim
from tests.unit import builders
from tests.unit.kinds.study.claimed import (
    FAST,
    SLOW,
    STUDY,
    cell,
    control,
    document,
    part,
    statement,
    summary,
)


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
    assert claim_words.lines(judged)[0].startswith(f"confirmed: {claim.statement} (")


def test_cells_without_a_valid_repetition_are_named() -> None:
    judged = document(summary(fast=FAST, slow=cell(1, valid=False)))
    assert [(one.cell, [why.code for why in one.reasons]) for one in judged.unmeasured] == [
        ("slow", ["steal"]), ("gone", ["cell_not_measured"]),
    ]  # fmt: skip
    assert judged.claims[0].outcome == "inconclusive"
    assert claim_words.lines(replace(judged, unmeasured=judged.unmeasured[1:]))[-1] == (
        "not measured: gone: it was not measured"
    )


def test_cell_without_its_closed_loop_says_which_one_is_void_and_why() -> None:
    most = replace(cell(6, valid=False), cell_id="most")
    rate = ScaledRate(
        cells=["slow"],
        fraction=0.5,
        of=[SaturationGoodput(cell="full", cell_id="most", goodput=None)],
        rate=None,
    )
    measured = summary(fast=FAST, gone_8=cell(6))
    judged = document(replace(measured, cells=[*measured.cells, most], rates=[rate]))
    (slow,) = judged.unmeasured
    assert [why.code for why in slow.reasons] == ["saturation_not_valid", "steal"]
    assert claim_words.void_reasons(slow.reasons[:1]) == (
        "its rate is a fraction of a closed loop that was not valid: full"
    )


def test_the_controls_of_a_summary_are_the_noise_of_its_claims() -> None:
    claim = StudyClaim(statement="so", all=[statement(order=["fast", "slow"])])
    study = replace(STUDY, claims=[claim])
    one, other = control(3)
    rows = [builders.noise_floor(metric, "fast", "fast-twin") for metric in ("goodput", "p50")]
    measured = summary(fast=one, slow=cell(50, 50, 50), fast_twin=other)
    found = document(replace(measured, noise_floor=rows), study)
    assert found.claims[0].outcome == "inconclusive"
    # A control that was not measured says nothing.
    alone = replace(measured, cells=measured.cells[:2], noise_floor=rows)
    assert document(alone, study).claims[0].outcome == "confirmed"
