from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.analysis import comparison
from loadlab.core.errors import ResultError
from loadlab.core.model import (
    CellSummary,
    ComparedCell,
    Comparison,
    Difference,
    MetricComparison,
    NoiseFloor,
    Reason,
    Sample,
)
from loadlab.report import words
from loadlab.scheduling.plan import PlannedComparison
from loadlab.stats import inference
from tests.unit import builders

CLOSED = builders.load(generator="wrk", mode="closed", rate=None)
SLOW, FAST = [100.0, 101, 102, 103, 104], [140.0, 141, 142, 143, 144]
VOID = builders.void("steal")


def cell(
    name: str,
    goodput: Sequence[float],
    *,
    void: int = 0,
    failed: int = 0,
    changed: dict[str, Any] | None = None,
    **definition: Any,
) -> CellSummary:
    """A cell of summary.json; p50 goes as 1000 / goodput, p99 is always about the same."""
    latency = builders.repetition().latency_us
    assert latency is not None
    reps = []
    for index, value in enumerate(goodput):
        us = replace(latency, p50=1e6 / max(value, 1), p99=5000.0 + index % 3)
        fields = {"goodput": value, "latency_us": us, "responses": 6000, "ok": 6000}
        reps.append(builders.repetition(**fields | (changed or {})))
    reps += [builders.repetition(validity=VOID)] * void
    made = builders.cell(**{"endpoint": "agents", "tuning": name, **definition})
    return builders.cell_summary(name, reps, made, failed=failed)


def on(server: str, made: CellSummary, name: str) -> CellSummary:
    """The cell under another name, measured by the host pair of this server."""
    reps = [replace(rep, server=server) for rep in made.repetitions]
    return replace(made, cell_id=name, repetitions=reps)


def asked(head: str, base: str = "stock", by: str = "tuning") -> PlannedComparison:
    return PlannedComparison(by=by, base=base, head=head)


class Found:
    """What comparison.build returned."""

    def __init__(self, found: tuple[list[Comparison], list[NoiseFloor]]) -> None:
        self.comparisons, self.noise_floor = found


def compare(
    *cells: CellSummary, controls: Sequence[tuple[str, str]] = (), base: str = "stock"
) -> Found:
    heads = [one.cell_id for one in cells if not one.cell_id.endswith("twin")][1:]
    return Found(comparison.build(cells, [asked(head, base) for head in heads], controls))


def rows(found: Found, which: int = 0) -> dict[str, MetricComparison]:
    return {row.metric: row for row in found.comparisons[which].rows}


def why(row: MetricComparison) -> str:
    return words.reason(row.reason)


def known(number: float | None) -> float:
    assert number is not None
    return number


def test_without_a_plan_nothing_is_compared() -> None:
    assert comparison.build([cell("stock", SLOW)], [], []) == ([], [])


def test_a_difference_and_none() -> None:
    found = rows(compare(cell("stock", SLOW), cell("production", FAST)))
    # Without a twin nothing is known to be alike.
    assert [found[name].conclusion for name in found] == ["higher", "lower", "inconclusive"]
    goodput = found["goodput"]
    assert goodput.base == Sample(n=5, median=102.0, low=100.0, high=104.0)
    assert goodput.head.median == 142.0
    assert goodput.difference.value == pytest.approx(142 / 102 - 1)
    assert known(goodput.difference.low) > 0.34
    assert goodput.p == pytest.approx(2 / 252)
    # Of three rows two have that p.
    assert goodput.p_corrected == pytest.approx(3 / 2 * 2 / 252)
    assert (goodput.effect_size, found["p50"].effect_size) == (1.0, -1.0)
    assert why(goodput) == "corrected p 0.012, no noise floor was measured"
    assert (goodput.noise_floor, goodput.noise_floor_scope) == (None, None)
    assert why(found["p99"]) == "the interval includes 0, no noise floor was measured"


def test_no_difference_is_one_that_lies_in_the_noise_whole() -> None:
    """The same median; the head's interval once as wide as the twin's, and once wider."""
    wide = [80.0, 95, 102, 110, 125]
    twin = cell("stock-twin", [value * 1.05 for value in SLOW])
    found = compare(
        cell("stock", SLOW), cell("alike", SLOW[::-1]), cell("wide", wide), twin,
        controls=[("stock", "stock-twin")],
    )  # fmt: skip
    alike, other = (rows(found, which)["goodput"] for which in (0, 1))
    assert (alike.conclusion, why(alike)[:32]) == (
        "no difference", "the whole interval is within the",
    )  # fmt: skip
    widest = max(-known(alike.difference.low), known(alike.difference.high))
    assert widest <= known(alike.noise_floor)
    assert other.conclusion == "inconclusive"
    assert why(other).startswith("the interval includes 0 and goes beyond the noise floor of")


def test_the_same_cells_give_the_same_figures_whatever_their_order() -> None:
    cells = [cell("stock", SLOW), cell("production", FAST), cell("stock-twin", SLOW[::-1])]
    plan = [asked("production")], [("stock", "stock-twin")]
    assert comparison.build(cells[::-1], *plan) == comparison.build(cells, *plan)


def test_p_is_corrected_over_all_rows_that_can_show_a_difference() -> None:
    several = compare(cell("stock", SLOW), cell("production", FAST), cell("other", SLOW))
    assert rows(several)["goodput"].p_corrected == pytest.approx(6 / 2 * 2 / 252)
    assert {row.conclusion for row in rows(several, 1).values()} == {"inconclusive"}


def test_three_against_three_are_undecided_however_far_apart() -> None:
    found = compare(cell("stock", SLOW[:3]), cell("production", FAST[:3]), cell("more", FAST))
    few = rows(found)["goodput"]
    assert few.conclusion == "inconclusive"
    assert why(few).startswith("3 repetitions against 3 cannot tell")
    assert known(few.difference.low) > 0.3
    assert few.p == pytest.approx(0.1)
    assert few.p_corrected is None
    # Nor do such rows make it harder for others.
    more = rows(found, 1)["goodput"]
    assert more.p_corrected == pytest.approx(3 / 2 * 2 / 56)


def test_too_many_comparisons_for_so_few_repetitions_are_said_to_be() -> None:
    heads = [cell(f"head-{index}", SLOW) for index in range(4)]
    found = compare(cell("stock", SLOW[:4]), cell("production", FAST[:4]), *heads)
    goodput = rows(found)["goodput"]
    assert goodput.p == pytest.approx(2 / 70)
    assert goodput.conclusion == "inconclusive"
    assert "at best with so many comparisons" in why(goodput)
    # What the values could have told apart, and did not, is another thing.
    assert "includes 0" in why(rows(found, 1)["goodput"])


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        (cell("stock", SLOW), cell("production", [], void=2),
         "no valid repetition of the head: steal"),
        (cell("stock", SLOW[:2], void=3), cell("production", FAST),
         "2 repetitions of the base to go by, at least 3 are needed"),
        (cell("stock", [0.0] * 5), cell("production", FAST), "the base's median is 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_inconclusive(
    base: CellSummary, head: CellSummary, text: str
) -> None:
    found = rows(compare(base, head))["goodput"]
    assert (found.conclusion, why(found)) == ("inconclusive", text)


def test_a_cell_that_was_never_measured_is_inconclusive() -> None:
    base = cell("stock", SLOW)
    planned = {"production": replace(base.cell, tuning="production")}
    plan = [asked("production")]
    ((found,), _) = comparison.build([base], plan, [], planned)
    missing = Reason(code="side_not_measured", facts={"side": "head"})
    assert [row.reason for row in found.rows] == [missing] * 3
    assert {row.conclusion for row in found.rows} == {"inconclusive"}
    assert found.head == ComparedCell(
        cell_id="production", name="production", n=0, n_void=0, failed_fraction=None
    )
    # Nothing is compared with a tuning that is left out.
    assert comparison.build([base], plan, [], planned, skipped=["production"]) == ([], [])
    with pytest.raises(ResultError, match="neither is a cell"):
        comparison.build([], plan, [])


def test_failed_requests_are_beside_the_latency_they_may_have_won() -> None:
    (found,) = compare(cell("stock", SLOW), cell("production", FAST, failed=300)).comparisons
    assert found.base.failed_fraction == 0
    assert found.head.failed_fraction == pytest.approx(300 / 30_000)
    assert (found.by, found.base.name, found.head.name) == (
        "tuning", "stock", "production",
    )  # fmt: skip
    assert found.cell.endpoint == "agents"


def test_latencies_of_two_origins_are_not_compared() -> None:
    found = rows(compare(cell("stock", SLOW), cell("production", FAST, load=CLOSED)))
    assert found["goodput"].conclusion == "higher"
    assert why(found["p50"]) == "latencies from scheduled and sent are never compared"
    assert {found[name].conclusion for name in ("p50", "p99")} == {"inconclusive"}


def test_a_p99_of_too_few_answers_is_not_compared() -> None:
    few = cell("production", FAST, changed={"responses": 999})
    found = rows(compare(cell("stock", SLOW), few))
    assert found["p50"].conclusion == "lower"
    assert found["p99"].conclusion == "inconclusive"
    assert why(found["p99"]) == (
        "a repetition of the head has 999 answers, too few for a p99: 10 must lie above it"
    )


def test_a_clients_latencies_are_of_its_ok_answers() -> None:
    batch = builders.batch()
    base = cell("stock", SLOW, load=batch)
    few = cell("production", FAST, load=batch, changed={"ok": 12})
    found = rows(compare(base, few))
    assert "has 12 answers" in why(found["p50"])
    none = cell("production", FAST, load=batch)
    reps = [
        replace(rep, latency_us=rep.latency_us and replace(rep.latency_us, p50=None, p99=None))
        for rep in none.repetitions
    ]
    found = rows(compare(base, replace(none, repetitions=reps)))
    assert why(found["p99"]) == "no repetitions of the head to go by, at least 3 are needed"
    assert found["p99"].difference == Difference(value=None, low=None, high=None)


def test_twins_are_the_noise_floor() -> None:
    loud = [value * 1.2 for value in SLOW]
    found = compare(
        cell("stock", SLOW), cell("slightly", [value * 1.1 for value in SLOW]),
        cell("stock-twin", loud), controls=[("stock", "stock-twin")],
    )  # fmt: skip
    assert [row.metric for row in found.noise_floor] == ["goodput", "p50", "p99"]
    floor = found.noise_floor[0]
    assert (floor.cell_id, floor.control_id) == ("stock", "stock-twin")
    assert floor.difference.value == pytest.approx(0.2)
    assert floor.noise_floor == floor.difference.high
    assert known(floor.noise_floor) > 0.2
    goodput = rows(found)["goodput"]
    assert (goodput.noise_floor, goodput.noise_floor_scope) == (floor.noise_floor, "cell")
    assert known(goodput.difference.low) > 0
    assert goodput.conclusion == "no difference"
    assert why(goodput).startswith("the whole interval is within the noise floor of ")


def test_the_floor_is_of_the_same_endpoint_and_load_where_there_is_one() -> None:
    def noisy(name: str, factor: float, **definition: Any) -> list[CellSummary]:
        twin = cell(f"{name}-twin", [factor * value for value in SLOW], **definition)
        return [cell(name, SLOW, **definition), twin]

    here = noisy("stock", 1.02) + noisy("also", 1.05)
    there = noisy("elsewhere", 2.0, endpoint="index") + noisy("loop", 3.0, load=CLOSED)
    pairs = [(c.cell_id, f"{c.cell_id}-twin") for c in (here + there)[::2]]
    cells = [*here, *there, cell("production", FAST)]

    def floor(controls: list[tuple[str, str]]) -> tuple[float | None, str | None]:
        found = Found(comparison.build(cells, [asked("production")], controls))
        row = rows(found)["goodput"]
        return row.noise_floor, row.noise_floor_scope

    def largest(factor: float) -> float | None:
        return inference.difference(SLOW, [factor * value for value in SLOW]).high

    assert floor(pairs) == (largest(1.05), "cell")
    assert floor(pairs[2:]) == (largest(3.0), "run")
    assert floor([]) == (None, None)
    # A twin that was not measured says nothing.
    assert floor([("stock", "nowhere")]) == (None, None)


def test_a_value_of_no_name_is_called_by_its_cell() -> None:
    cells = [cell("stock", SLOW), cell("production", FAST)]
    plan = [asked("production", by="rate"), asked("production", by="colour")]
    (by_rate, by_colour), _ = comparison.build(cells, plan, [])
    assert by_rate.head.name == "1000"
    assert by_colour.head.name == "production"
    (given, _), _ = comparison.build(cells, plan, [], names={"production": "a run"})
    assert given.head.name == "a run"


def test_what_two_pairs_differ_by_is_noise_between_them_alone() -> None:
    base, same = (on("server", cell("stock", SLOW), name) for name in ("stock", "stock-twin"))
    other = on("server2", cell("stock", FAST), "stock-twin-2")
    here, there = (
        on(pair, cell("production", FAST), f"production-{pair}") for pair in ("server", "server2")
    )
    found = Found(
        comparison.build(
            [base, same, other, here, there],
            [asked(here.cell_id), asked(there.cell_id)],
            [("stock", "stock-twin"), ("stock", "stock-twin-2")],
        )
    )
    within, across = (rows(found, which)["goodput"] for which in (0, 1))
    assert known(within.noise_floor) < 0.1 < known(across.noise_floor)
    assert across.conclusion != "higher"
