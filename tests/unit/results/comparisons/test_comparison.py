import statistics
from collections.abc import Sequence
from typing import Any

import pytest
import scipy
from msgspec.structs import replace

from loadlab.model import CellSummary, ComparedCell, Difference, MetricComparison, Reason, Sample
from loadlab.plan.plan_document import PlannedComparison
from loadlab.report import words
from loadlab.results.comparisons import comparison
from loadlab.results.comparisons.comparison import Compared
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.builders import present


def times(values: Sequence[float], *factors: float) -> list[float]:
    return [value * factor for value, factor in zip(values, factors, strict=True)]


CLOSED = builders.load(generator="wrk", mode="closed", rate=None)
SLOW, FAST = [100.0, 101, 102, 103, 104], [140.0, 141, 142, 143, 144]
# As SLOW, each value 0.2 % off.
ALIKE = times(SLOW, 1.002, 0.998, 1, 0.998, 1.002)
VOID = builders.void("steal")
# Without what the hosts recorded.
BARE = {"telemetry": None}


def cell(
    name: str,
    goodput: Sequence[float],
    *,
    void: int = 0,
    failed: int = 0,
    changed: dict[str, Any] | None = None,
    **definition: Any,
) -> CellSummary:
    """A cell of summary.json; p50 goes as 1000 / goodput, p99 is always about the same.

    ``failed``: requests that timed out; without it the response times are the latencies.
    """
    latency = present(builders.repetition().latency_us)
    waits = present(builders.repetition().response_time)
    closed = definition.get("load") in (CLOSED, builders.batch())
    reps = []
    for index, value in enumerate(goodput):
        us = replace(latency, p50=1e6 / max(value, 1), p99=5000.0 + index % 3)
        waited = replace(
            waits, p50_us=us.p50, p99_us=us.p99, requests=6000, failed=failed // len(goodput)
        )
        fields = {"goodput": value, "latency_us": us, "responses": 6000, "ok": 6000,
                  "repetition": index + 1, "response_time": None if closed else waited}  # fmt: skip
        reps.append(builders.repetition(**fields | (changed or {})))
    reps += [builders.repetition(validity=VOID, repetition=len(reps) + 1)] * void
    made = builders.cell(**{"endpoint": "agents", "tuning": name, **definition})
    return builders.cell_summary(name, reps, made, failed=failed)


def on(server: str, made: CellSummary, name: str) -> CellSummary:
    """The cell under another name, measured by the host pair of this server."""
    reps = [replace(rep, server=server) for rep in made.repetitions]
    return replace(made, cell_id=name, repetitions=reps)


def asked(head: str, base: str = "stock", by: str = "tuning") -> PlannedComparison:
    return PlannedComparison(by=by, base=base, head=head)


def compare(
    *cells: CellSummary, controls: Sequence[tuple[str, str]] = (), base: str = "stock"
) -> Compared:
    heads = [one.cell_id for one in cells if not one.cell_id.endswith("twin")][1:]
    return comparison.build(cells, [asked(head, base) for head in heads], controls)


def against(head: CellSummary) -> Compared:
    return compare(cell("stock", SLOW), head)


def rows(found: Compared, which: int = 0) -> dict[str, MetricComparison]:
    return {row.metric: row for row in found.comparisons[which].rows}


def why(row: MetricComparison) -> str:
    return words.reason(row.reason)


def test_without_a_plan_nothing_is_compared() -> None:
    assert comparison.build([cell("stock", SLOW)], [], []) == ([], [])


def test_a_difference_and_none() -> None:
    found = rows(against(cell("production", FAST)))
    assert [found[name].conclusion for name in found] == ["higher", "lower", "no difference"]
    goodput = found["goodput"]
    assert (goodput.method, goodput.n, goodput.latency_of) == ("blocks", 5, None)
    assert goodput.base == Sample(n=5, median=102.0, low=100.0, high=104.0)
    assert goodput.head.median == 142.0
    ratios = [fast / slow for slow, fast in zip(SLOW, FAST, strict=True)]
    assert goodput.difference.value == pytest.approx(statistics.geometric_mean(ratios) - 1)
    assert present(goodput.difference.low) > 0.37
    assert (goodput.noise_floor, goodput.noise_floor_scope) == (None, None)
    assert why(goodput).endswith("no noise floor was measured")
    assert found["p50"].latency_of == "due"
    assert why(found["p99"]) == "the interval includes equality, and all of it is within 5.0 %"


def test_no_difference_is_an_interval_within_the_margin_whatever_the_noise() -> None:
    wide = [80.0, 95, 102, 110, 125]
    twin = cell("stock-twin", times(SLOW, 1, 1.3, 0.8, 1.1, 1))
    cells = cell("stock", SLOW), cell("alike", ALIKE), cell("wide", wide), twin
    found = compare(*cells, controls=[("stock", "stock-twin")])
    alike, other = (rows(found, which)["goodput"] for which in (0, 1))
    assert (alike.conclusion, other.conclusion) == ("no difference", "inconclusive")
    widest = max(-present(other.difference.low), present(other.difference.high))
    assert 0.05 < widest < present(other.noise_floor)
    assert why(other) == "the interval includes equality and goes beyond 5.0 %"


def test_a_small_difference_is_one() -> None:
    """Every block is 1 % higher: not the same, and by less than the margin."""
    head = [value * (1.01 + index / 10_000) for index, value in enumerate(SLOW)]
    row = rows(compare(cell("stock", SLOW), cell("production", head)))["goodput"]
    assert (row.conclusion, row.reason.code) == ("higher", "difference_within_margin")
    assert why(row).startswith("by less than 5.0 %; corrected p ")


def test_drift_between_blocks_hides_nothing() -> None:
    """Both slow down by half under way; the head is 6 % higher in each block, give or take."""
    drift = [100.0, 90, 80, 65, 50]
    head = times(drift, 1.06, 1.07, 1.05, 1.06, 1.06)
    row = rows(compare(cell("stock", drift), cell("production", head)))["goodput"]
    assert (row.conclusion, round(present(row.difference.value), 2)) == ("higher", 0.06)


def test_a_block_that_was_repeated_has_its_median() -> None:
    base = cell("stock", SLOW)
    again = [replace(rep, block=rep.repetition) for rep in base.repetitions]
    extra = [replace(again[4], repetition=number, goodput=value) for number, value in
             ((6, 90.0), (7, 104.0))]  # fmt: skip
    several = replace(base, repetitions=[*again, *extra])
    found = rows(compare(several, cell("production", FAST)))["goodput"]
    assert (found.n, found.base.n) == (5, 7)
    assert found.difference == rows(compare(base, cell("production", FAST)))["goodput"].difference


def test_the_same_cells_give_the_same_figures_whatever_their_order() -> None:
    cells = [cell("stock", SLOW), cell("production", FAST), cell("stock-twin", SLOW[::-1])]
    plan = [asked("production")], [("stock", "stock-twin")]
    assert comparison.build(cells[::-1], *plan) == comparison.build(cells, *plan)


def costing(name: str, cpu_s: Sequence[float], **changes: Any) -> CellSummary:
    """A cell whose application used so many seconds of CPU in each repetition."""
    made = cell(name, SLOW, **changes)
    reps = [
        builders.with_services(rep, application=builders.processes(cpu_s=spent))
        for rep, spent in zip(made.repetitions, cpu_s, strict=True)
    ]
    return replace(made, repetitions=reps)


def test_what_a_request_costs_is_compared_where_it_was_recorded() -> None:
    found = rows(compare(costing("stock", SLOW), costing("production", FAST)))
    assert list(found) == ["goodput", "p50", "p99", "cpu", "memory"]
    assert (found["cpu"].conclusion, found["memory"].conclusion) == ("higher", "no difference")
    # Each kind of figure has a correction of its own.
    speeds = [found[name] for name in ("goodput", "p50", "p99")]
    alone = rows(compare(cell("stock", SLOW, changed=BARE), cell("head", SLOW, changed=BARE)))
    assert [row.p_corrected for row in speeds] == [row.p_corrected for row in alone.values()]


def test_a_head_that_fails_is_not_cheaper() -> None:
    found = rows(compare(costing("stock", FAST), costing("production", SLOW, failed=3000)))
    assert found["cpu"].conclusion == "inconclusive"
    assert found["cpu"].reason.code == "better_failed_more"


def test_twins_have_a_noise_floor_for_each_part_of_the_cost() -> None:
    cells = costing("stock", SLOW), costing("stock-twin", ALIKE)
    found = compare(*cells, controls=[("stock", "stock-twin")])
    floors = {row.metric: row.noise_floor for row in found.noise_floor}
    assert floors["cpu"] == floors["cpu_application"]
    assert present(floors["cpu"]) < 0.01
    assert {"cpu_reverse_proxy", "cpu_kernel", "energy"}.isdisjoint(floors)


def test_p_is_corrected_over_all_rows_that_are_compared() -> None:
    heads = [cell("production", FAST), cell("other", ALIKE), cell("few", FAST[:2])]
    found = compare(cell("stock", SLOW), *heads)
    every = [row for which in range(3) for row in rows(found, which).values()]
    compared = [row for row in every if row.p is not None]
    assert len(compared) == 6
    wanted = scipy.stats.false_discovery_control([row.p for row in compared])
    assert [row.p_corrected for row in compared] == pytest.approx(list(wanted))
    assert {row.p_corrected for row in every if row.p is None} == {None}


def test_blocks_that_have_only_one_of_the_cells_do_not_count() -> None:
    head = cell("production", FAST)
    voided = [
        replace(rep, validity=VOID) if rep.repetition > 2 else rep for rep in head.repetitions
    ]
    later = [replace(rep, repetition=rep.repetition + 5) for rep in head.repetitions]
    one = replace(head, repetitions=[*voided, *later])
    found = rows(compare(cell("stock", SLOW), one))
    assert why(found["goodput"]) == "2 blocks with a value of both, at least 3 are needed"
    assert present(found["goodput"].difference.value) > 0.3
    assert found["goodput"].difference.low is found["goodput"].p is None


@pytest.mark.parametrize("load", [None, CLOSED])
def test_a_head_that_fails_is_never_better(load: Any) -> None:
    """40 % failed at once: half of the time for the others, and no response time in a loop."""
    definition = {} if load is None else {"load": load}
    base = cell("stock", SLOW, **definition)
    head = cell("production", FAST, failed=12_000, **definition)
    found = rows(compare(base, head))
    assert {found[name].conclusion for name in ("p50", "p99")} <= {"inconclusive", "no difference"}
    assert why(found["p50"]) == (
        "the head is faster, but 40 % more of its requests failed" if load is None else
        "40 % of the requests of the head failed, and the latencies are of the answers alone"
    )  # fmt: skip
    back = rows(compare(head, base, base="production"))["p50"]
    assert (back.conclusion, back.reason.facts["side"]) == ("inconclusive", "base")


def test_a_response_time_counts_what_failed() -> None:
    """Half as long for those answered, and every hundredth request timed out."""
    base, head = cell("stock", SLOW), cell("production", FAST, failed=300)
    reps = [
        replace(rep, response_time=replace(present(rep.response_time), p99_us=30e6))
        for rep in head.repetitions
    ]
    found = rows(compare(base, replace(head, repetitions=reps)))
    assert (found["p99"].conclusion, found["p99"].head.median) == ("higher", 30e6)


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        (cell("stock", SLOW), cell("production", [], void=2),
         "no valid repetition of the head: steal"),
        (cell("stock", SLOW[:2], void=3), cell("production", FAST),
         "2 repetitions of the base to go by, at least 3 are needed"),
        (cell("stock", [0.0] * 5), cell("production", FAST),
         "not comparable: 5 of 5 values of the base are 0"),
        (cell("stock", SLOW), cell("production", [0.0, 0.0, *FAST[2:]]),
         "not comparable: 2 of 5 values of the head are 0"),
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
    assert (found.by, found.base.name, found.head.name) == ("tuning", "stock", "production")
    assert found.cell.endpoint == "agents"


def test_latencies_of_two_origins_are_not_compared() -> None:
    found = rows(against(cell("production", FAST, load=CLOSED)))
    assert found["goodput"].conclusion == "higher"
    assert why(found["p50"]) == "latencies from scheduled and sent are never compared"
    assert {found[name].conclusion for name in ("p50", "p99")} == {"inconclusive"}


def test_a_p99_of_too_few_answers_is_not_compared() -> None:
    few = cell("production", FAST, load=CLOSED, changed={"responses": 999})
    found = rows(compare(cell("stock", SLOW, load=CLOSED), few))
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
    slightly, twin = (
        cell("slightly", times(SLOW, *[1.1] * 5)),
        cell("stock-twin", times(SLOW, *[1.2] * 5)),
    )
    found = compare(cell("stock", SLOW), slightly, twin, controls=[("stock", "stock-twin")])
    names = ["goodput", "p50", "p99", "cpu_interrupts"]
    assert [row.metric for row in found.noise_floor] == names
    floor = found.noise_floor[0]
    assert (floor.cell_id, floor.control_id) == ("stock", "stock-twin")
    assert floor.difference.value == pytest.approx(0.2)
    assert floor.noise_floor == floor.difference.high
    assert present(floor.noise_floor) >= 0.2 - 1e-9
    goodput = rows(found)["goodput"]
    assert (goodput.noise_floor, goodput.noise_floor_scope) == (floor.noise_floor, "cell")
    assert present(goodput.difference.low) > 0
    assert goodput.conclusion == "inconclusive"
    assert why(goodput).startswith("within the noise here: no larger than the noise floor of ")


def test_the_floor_is_of_the_same_endpoint_and_load_where_there_is_one() -> None:
    def noisy(name: str, factor: float, **definition: Any) -> list[CellSummary]:
        twin = cell(f"{name}-twin", [factor * value for value in SLOW], **definition)
        return [cell(name, SLOW, **definition), twin]

    here = noisy("stock", 1.02) + noisy("also", 1.05)
    there = noisy("elsewhere", 2.0, endpoint="index") + noisy("loop", 3.0, load=CLOSED)
    pairs = [(c.cell_id, f"{c.cell_id}-twin") for c in (here + there)[::2]]
    cells = [*here, *there, cell("production", FAST)]

    def floor(controls: list[tuple[str, str]]) -> tuple[float | None, str | None]:
        found = comparison.build(cells, [asked("production")], controls)
        row = rows(found)["goodput"]
        return row.noise_floor, row.noise_floor_scope

    def largest(factor: float) -> Any:
        return pytest.approx(factor - 1)

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


def test_what_two_pairs_differ_by_is_noise_between_them_alone() -> None:
    base, same = (on("server", cell("stock", SLOW), name) for name in ("stock", "stock-twin"))
    other = on("server2", cell("stock", FAST), "stock-twin-2")
    here, there = (
        on(pair, cell("production", FAST), f"production-{pair}") for pair in ("server", "server2")
    )
    found = comparison.build(
        [base, same, other, here, there],
        [asked(here.cell_id), asked(there.cell_id)],
        [("stock", "stock-twin"), ("stock", "stock-twin-2")],
    )
    within, across = (rows(found, which)["goodput"] for which in (0, 1))
    assert (within.method, across.method) == ("blocks", "repetitions")
    assert present(within.noise_floor) < 0.1 < present(across.noise_floor)
    assert across.conclusion != "higher"
