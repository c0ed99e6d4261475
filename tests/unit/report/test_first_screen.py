"""The first screen: the sentences and tiles, the figure of all stacks, the table."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds import page as report
from loadlab.model import (
    Arrivals,
    CellLimit,
    LaneTurns,
    PercentileInterval,
    Reason,
    ResponseTime,
    Sample,
    Summary,
)
from loadlab.report.first_screen import figure, first_results, key_facts, tiles
from loadlab.report.html import Facts, Figure, Fold, Headline, Text
from loadlab.report.sections import cell_outcome
from loadlab.report.terminal import cell_lines
from loadlab.report.words import labels, limits_words
from loadlab.report.words.labels import Entry
from loadlab.results.limits import judge_limits
from tests.unit import builders
from tests.unit.report import blocks, runs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """Stacks at rising rates up to 32,000/s, where the client is the limit; p99 up to 100 ms."""
    run = tmp_path_factory.mktemp("rates")
    chosen = [one for one in runs.STACKS if one.framework in ("bottle", "django", "golang")]
    return run, runs.at_rates(run, chosen, (500.0, 2000.0, 16000.0, 32000.0))


def entries(summary: Summary) -> list[Entry]:
    return labels.entries([one for one in summary.cells if one.purpose == "measure"], {})


def test_plots_are_by_the_rate_that_meets_the_objective(rates: tuple[Path, Summary]) -> None:
    _, summary = rates
    (section,) = figure.build(summary, {}, entries(summary))
    assert not section.css
    assert "p99 up to 100 ms" in blocks.find(Text, section)[0].text
    plots = blocks.find(Figure, section)
    names = [one.title.split(",")[0] for one in plots]
    assert names[:2] == ["golang", "bottle"]
    assert set(names[2:]) == {"django"}
    axes = {ET.fromstring(str(one.svg)).get("data-axes") for one in plots}
    assert len(axes) == 1
    anchors = {entry.anchor for entry in entries(summary)}
    assert all(one.anchor in anchors for one in plots)
    # A rate without a valid repetition is hatched.
    golang, bottle = (str(one.svg) for one in plots[:2])
    assert "<pattern" in golang
    assert "32,000/s void" in golang
    assert "<pattern" not in bottle


def test_a_ramp_has_no_place_among_the_rates(rates: tuple[Path, Summary]) -> None:
    _, summary = rates
    cell = summary.cells[0].cell
    ramp = Arrivals(ramp=[(0.0, 100.0), (1.0, 900.0)])
    ramped = replace(summary.cells[0], cell=replace(cell, load=replace(cell.load, arrivals=ramp)))
    beside = replace(summary, cells=[*summary.cells, ramped])
    assert figure.build(beside, {}, entries(summary)) == figure.build(summary, {}, entries(summary))


def test_stacks_at_one_rate_are_on_one_axis_and_one_alone_is_not(tmp_path: Path) -> None:
    summary = runs.many(tmp_path / "a", 3, 1, 5)
    (section,) = figure.build(summary, {}, entries(summary))
    assert section.css == "wide"
    (plot,) = blocks.find(Figure, section)
    assert len(plot.keys) == 3
    drawn = [one.get("data-s") for one in ET.fromstring(str(plot.svg)).iter(f"{SVG}g")]
    assert {key.name for key in plot.keys} == {name for name in drawn if name}
    alone = runs.many(tmp_path / "b", 1, 1, 5)
    assert figure.build(alone, {}, entries(alone)) == []


def test_stacks_in_one_closed_loop_are_a_row_each_the_best_first(tmp_path: Path) -> None:
    summary = runs.many(tmp_path, 3, 3, 5)
    cells = []
    for index, one in enumerate(summary.cells):
        load = replace(one.cell.load, mode="closed", rate=None)
        reps = [replace(rep, goodput=1000.0 * (index + 1)) for rep in one.repetitions]
        cells.append(replace(one, cell=replace(one.cell, load=load), repetitions=reps))
    summary = replace(summary, cells=cells)
    (section,) = figure.build(summary, {}, entries(summary))
    goodput, p99 = blocks.find(Figure, section)
    assert (goodput.title, p99.title) == ("goodput", "p99")
    root = ET.fromstring(str(goodput.svg))
    assert "flask, uwsgi 3,000; flask, gunicorn 2,000; aiohttp" in str(root.get("aria-label"))
    assert "3,000" in "".join(root.itertext())
    alone = replace(summary, cells=cells[:1])
    assert figure.build(alone, {}, entries(alone)) == []


def test_the_tiles_are_those_of_the_best_stack(rates: tuple[Path, Summary]) -> None:
    _, summary = rates
    (board,) = tiles.build(summary, entries(summary), {})
    assert board.title.startswith("golang on its own server")
    shown = {one.name: (one.value, one.remark) for one in board.tiles}
    assert shown["highest rate"] == ("16,000", "with p99 up to 100 ms and no errors")
    assert shown["verdict"] == ("held", "3 valid of 3")
    assert "noise floor" not in shown


def test_what_a_request_costs_has_its_interval_noise_floor_and_price(
    rates: tuple[Path, Summary],
) -> None:
    _, summary = rates
    (board,) = tiles.build(summary, entries(summary), {})
    (found,) = [one.cell for one in entries(summary) if one.anchor == board.anchor]
    cost = replace(
        builders.present(found.cost),
        cpu=Sample(n=3, median=95.3, low=86.6, high=108.2),
        energy=Sample(n=1, median=0.0123, low=None, high=None),
    )
    floor = builders.noise_floor("cpu", found.cell_id, "b", 0.14)
    reps = [replace(rep, server="here") for rep in found.repetitions]
    costly = replace(found, cost=cost, repetitions=reps)
    cells = [costly if one is found else one for one in summary.cells]
    summary = replace(summary, cells=cells, noise_floor=[floor])
    (board,) = tiles.build(summary, entries(summary), {"here": 0.36})
    shown = {one.name: (one.value, one.unit, one.remark) for one in board.tiles}
    assert shown["CPU"][:2] == ("95.3", "µs/request")
    assert shown["CPU"][2] == "86.6 to 108, noise floor 14 %"
    assert shown["energy"] == ("12.3", "mJ/request", "of the whole machine")
    # The floor of a cost is with the cost.
    assert "noise floor" not in shown
    amount, unit, remark = shown["price"]
    assert (amount, unit) == ("0.00625", "USD/million requests")
    assert remark.startswith("at 16,000 requests/s, the highest rate within the objective")


def test_a_cell_that_met_no_limit_shows_that_of_its_saturation(tmp_path: Path) -> None:
    summary = runs.many(tmp_path, 1, 1, 5)
    (cell,) = [entry.cell for entry in entries(summary)]
    own = CellLimit(
        limit=Reason(code="none", value=3010.0, limit=1e5,
                     facts={"busy": 0.4, "rate": 500.0, "failed": 0}),
        agree=1, of=1, ruled_out=[], unrecorded=[], mean_us=None, account=[],
    )  # fmt: skip
    busy = Reason(code="cores_busy", value=0.99, limit=0.9, facts={"cores": 2})
    full = replace(own, limit=busy, of=2)
    loop = replace(cell, cell_id="loop", base=cell.cell_id, purpose="closed_loop", limit=full)
    both = replace(summary, cells=[replace(cell, limit=own), loop])
    (board,) = tiles.build(both, entries(both), {})
    assert board.limit.startswith("Nothing was at its limit: ")
    saturated = " In a closed loop, limited by the server's 2 cores: 99 % busy (1 of 2 repetitions)"
    assert f"{saturated}. Next: " in board.limit
    load = replace(loop.cell.load, mode="closed", rate=None)
    loop = replace(loop, cell=replace(loop.cell, load=load))
    (constant, *loops) = labels.entries([both.cells[0], loop], {})
    shared = {"a shared machine": "they share a machine"}
    every = [*both.cells, replace(both.cells[0], cell_id="curve", purpose="curve")]
    (lines,) = key_facts.build(
        [constant],
        loops,
        every,
        question="",
        lab_tests=None,
        hosts="Hosts: server 2 cores.",
        caveats=shared,
        certificate="",
        variants={},
    )
    assert lines.facts == {
        "Measured": "aiohttp on Gunicorn on /index: 1,000 requests/s and as fast as each can "
        "answer (closed loop); then 1 rate for a latency curve.",
        "Trust": "With care (few measurements, a shared machine): all 3 measurements are valid.",
        "Limit": "In a closed loop: the server's 2 cores, 99 % busy, in 1 of 2 repetitions.",
    }
    assert lines.details == {
        "Measured": "64 connections, 5 s, once each (2 measurements). Each rate of the curve once, "
        "or twice if it missed (1 measurement). Hosts: server 2 cores.",
        "Trust": "What was measured fewer than 3 times has no interval. They share a machine.",
        "Limit": "At 1,000/s nothing was at its limit (the server's cores 40 % busy).",
    }


def test_a_test_of_the_lab_is_trusted_by_its_tests_and_its_noise(tmp_path: Path) -> None:
    summary = runs.many(tmp_path, 1, 1, 5)
    tests = key_facts.LabTests(measured="the lab: 2 tests.", beside="", trust="Yes: all.")
    (lines,) = key_facts.build(
        entries(summary), [], summary.cells, question="", lab_tests=tests, hosts="",
        caveats={"noise of 17 %": "it differs from itself"}, certificate="", variants={},
    )  # fmt: skip
    assert (lines.facts["Measured"], lines.facts["Trust"]) == ("the lab: 2 tests.", "Yes: all.")
    assert lines.facts["Limit"].startswith("Not looked for: ")
    assert lines.details["Measured"].startswith("To see the noise, aiohttp on Gunicorn on /index: ")
    assert lines.details["Trust"].startswith("Of the noise, 1 of 1 measurement is valid. ")
    assert lines.details["Trust"].endswith(" It differs from itself.")


def test_the_line_on_lanes_has_their_closed_loops(tmp_path: Path) -> None:
    summary = runs.many(tmp_path, 2, 1, 5)
    lanes = LaneTurns(closed_s=2)
    cells = [
        replace(cell, cell=replace(cell.cell, load=replace(cell.cell.load, lanes=lanes)))
        for cell in summary.cells
    ]
    (lines,) = key_facts.build(
        entries(replace(summary, cells=cells)), [], cells, question="", lab_tests=None, hosts="",
        caveats={}, certificate="", variants={},
    )  # fmt: skip
    assert lines.facts["Measured"].endswith(
        "requests/s to each, all at the same time; then one after the other as fast as each can "
        "answer (closed loop)."
    )


def test_stacks_that_share_the_first_rank_are_not_said_to_differ(tmp_path: Path) -> None:
    # All held the rate, and no response time is known.
    summary = runs.many(tmp_path, 3, 1, 5)
    (board,) = tiles.build(summary, entries(summary), {})
    assert board.title.startswith("aiohttp on Gunicorn")
    assert board.title.endswith("one of 3 stacks at the first rank, which nothing distinguishes")
    (ranking,) = summary.ranking
    ordered = [
        replace(row, rank=rank, shared=False)
        for rank, row in enumerate(ranking.rows[::-1], start=1)
    ]
    summary = replace(summary, ranking=[replace(ranking, rows=ordered)])
    (board,) = tiles.build(summary, entries(summary), {})
    assert board.title.endswith("the best of 3 stacks")
    best = next(one for one in entries(summary) if one.anchor == board.anchor)
    assert best.cell.cell_id == ordered[0].cell_id


@pytest.mark.parametrize(
    ("stacks", "expected"), [(1, "at the best of 2 loads"), (2, "the best of 4 cells of 2 stacks")]
)
def test_the_best_of_several_rates_says_what_it_is_the_best_of(
    tmp_path: Path, stacks: int, expected: str
) -> None:
    summary = runs.at_rates(tmp_path, runs.STACKS[:stacks], [500, 1000])
    (board,) = tiles.build(summary, entries(summary), {})
    assert board.title.endswith(f"on /index, {expected}")


def test_the_answer_is_short_and_all_other_sentences_are_folded(
    rates: tuple[Path, Summary],
) -> None:
    run, summary = rates
    page = report.build(run)
    (answer,) = (block for block in page.answer if isinstance(block, Headline))
    assert answer in page.headlines
    assert answer.text.startswith("Best of 4 searches: golang on its own server on /index holds 16")
    (folded,) = blocks.find(Fold, *page.answer)
    texts = [one.text for one in blocks.find(Headline, folded)]
    assert sum("with p99 up to 100 ms" in text for text in texts) == len(summary.searches)
    (void,) = (text for text in texts if "void" in text)
    assert void.endswith("void: the client's CPU was full (93 % busy).")


def test_one_stack_on_several_endpoints_is_one_sentence_and_a_void_run_says_why(
    tmp_path: Path,
) -> None:
    stack = runs.STACKS[0]
    results = [runs.result(stack, name, 500, 1, 5) for name in ("index", "agents")]
    runs.write(tmp_path / "held", results)
    (answer,) = report.build(tmp_path / "held").headlines
    held = "aiohttp on Gunicorn held 500 requests/s on /agents and /index: p99 "
    assert answer.text.startswith(held)
    assert answer.text.count("p99") == 1
    void = [runs.voided(each) for each in results]
    reasons = [replace(void[1].validity.reasons[0], value=0.2, facts={"host": "client"})]
    void[1] = replace(void[1], validity=replace(void[1].validity, reasons=reasons))
    runs.write(tmp_path / "void", void)
    page = report.build(tmp_path / "void")
    no_result = "No valid result: another machine took 5.0 to 20 % of the CPU."
    assert page.headlines[0].text == no_result
    assert not blocks.find(tiles.Board, *page.answer)


def test_what_has_no_valid_measurement_has_no_limit_and_little_trust(tmp_path: Path) -> None:
    stacks = runs.STACKS[:3]
    results = [runs.result(stack, "index", 500, 1, 5) for stack in stacks]
    some = runs.write(tmp_path / "some", [results[0], *map(runs.voided, results[1:])])
    full = CellLimit(
        limit=Reason(code="cores_busy", value=0.99, limit=0.9, facts={"cores": 2}),
        agree=1, of=1, ruled_out=[], unrecorded=[], mean_us=None, account=[],
    )  # fmt: skip
    some = replace(some, cells=[replace(cell, limit=full) for cell in some.cells])

    def lines(summary: Summary, shown: list[Entry], is_cause_named: bool = False) -> Facts:
        (facts,) = key_facts.build(
            shown, [], summary.cells, question="", lab_tests=None, hosts="", caveats={},
            certificate="", variants={}, is_cause_named=is_cause_named,
        )  # fmt: skip
        return facts

    facts = lines(some, entries(some))
    assert facts.facts["Trust"].endswith(": 1 of 3 measurements is valid.")
    assert facts.facts["Trust"].startswith("With much care (")
    assert facts.facts["Limit"].startswith("At 500/s: ")
    assert "the server's 2 cores, 99 % busy (" in facts.facts["Limit"]
    assert (
        "not known, as no measurement is valid (flask gunicorn and flask uwsgi)."
        in facts.facts["Limit"]
    )
    shown = [entry for entry in entries(some) if not cell_outcome.valid(entry.cell)]
    void = lines(some, shown)
    assert void.facts["Trust"] == "No: none of the 2 measurements is valid."
    cause = "Void, and left out of every figure: another machine took 5.0 % of the CPU. "
    beside = "Of what was measured beside it, 1 of 1 measurement is valid."
    assert void.details["Trust"] == cause + beside
    assert lines(some, shown, is_cause_named=True).details["Trust"] == beside
    assert void.facts["Limit"] == "Not known, as none of these measurements is valid."


def test_a_withheld_p99_is_the_same_bound_everywhere_and_no_maximum_passes_for_one(
    tmp_path: Path,
) -> None:
    """A p99 that the generator may have made on /agents; too few answers for one on /index."""
    stack = runs.STACKS[0]
    results = [runs.result(stack, name, 500, 1, 5) for name in ("agents", "index")]
    summary = runs.write(tmp_path, results)
    withheld = Reason(code="percentile_withheld", facts={"percentile": "p99"})
    few = Reason(code="few_answers", value=200, limit=1000, facts={"percentile": "p99"})
    waits = ResponseTime(mean_us=300.0, p50_us=250.0, p99_us=671.0, requests=7500, failed=0)
    shown = [one for one in summary.cells if one.purpose == "measure"]
    cells = []
    for cell, reason in zip(shown, (withheld, few), strict=True):
        unknown = PercentileInterval(low=None, high=None, reason=reason)
        statistics = replace(
            cell.statistics,
            latency_us=replace(cell.statistics.latency_us, p99=None, max=4199.0),
            latency_interval_us=replace(cell.statistics.latency_interval_us, p99=unknown),
            response_time=waits,
        )
        cells.append(replace(cell, statistics=statistics))
    summary = replace(summary, cells=cells)
    told = entries(summary)
    first, second = (one.where for one in told)
    sentence = cell_outcome.headline(*told).text
    assert f"p99 ≤ 0.671 ms on {first}, max 4.20 ms on {second}, no errors" in sentence
    boards = tiles.build(summary, told, {})
    assert [[(one.name, one.value) for one in board.tiles][1] for board in boards] == [
        ("p99", "≤ 0.671"), ("max", "4.20"),
    ]  # fmt: skip
    lines = cell_lines.table(summary, {}).splitlines()
    bound, withheld_max = (line.split() for line in lines if "500/s" in line and "  " in line)
    assert {"≤", "0.671"} <= {*bound}
    assert "4.20" not in withheld_max
    assert any(
        line.startswith("-: too few answers") and "≤: at most, as the generator may" in line
        for line in lines
    )
    own = CellLimit(
        limit=Reason(code="none", value=3010.0, limit=1e5,
                     facts={"busy": 0.4, "rate": 500.0, "failed": 0}),
        agree=1, of=1, ruled_out=[], unrecorded=[], mean_us=None, account=[],
    )  # fmt: skip
    limits = [
        limits_words.sentence(builders.present(judge_limits.pooled(own, one.statistics)))
        for one in cells
    ]
    assert "came back with p99 ≤ 0.671 ms" in limits[0]
    assert "came back with max 4.20 ms" in limits[1]


def test_the_noise_floor_is_with_the_columns_that_it_explains(tmp_path: Path) -> None:
    summary = runs.many(tmp_path / "a", 2, 1, 5)
    floor = builders.noise_floor("p99", "a", "b", 0.07)
    floors = [floor, replace(floor, noise_floor=0.02), replace(floor, noise_floor=None)]
    found = first_results.build(entries(summary), floors)
    assert found
    assert [one.value for one in found.head if one.text.startswith("p99")] == ["low 0.07", "low"]
    assert "the noise floor, p99 7.0 %, explains the difference" in found.caption
    assert found.facets == {"framework": ["aiohttp", "flask"]}
    assert [row.group for row in found.rows] == [found.rows[0].group] * 2
