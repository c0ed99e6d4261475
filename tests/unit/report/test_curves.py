"""The curve of a run at one rate, on the page and on the terminal."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds import page as report
from loadlab.model import CurveSummary, Result, Summary
from loadlab.report.first_screen import figure, tiles
from loadlab.report.first_screen.tiles import Board
from loadlab.report.html import Figure, Headline, Results, Table, Text
from loadlab.report.sections import curves_section
from loadlab.report.sections.cells_section import CellSection
from loadlab.report.terminal import cell_lines
from loadlab.report.words import labels
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.report import blocks, runs
from tests.unit.results.summaries.test_sweeps_searches import change, paths, run_of, summed

AIOHTTP = "aiohttp on Gunicorn"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at 1,300 requests/s, above the 1,240 of its closed loop; 620 requests/s are void."""
    plan = builders.plan(curve=True, endpoint="agents", rate=1300)
    folder = run_of(tmp_path_factory.mktemp("curve") / "r", plan)
    change(paths(folder, "curve", 620)[0], validity=runs.voided(builders.result()).validity)
    documents.write(RunDir(folder).summary, documents.encode(summed(folder)))
    return folder


@pytest.fixture(scope="module")
def page(run: Path) -> report.Page:
    return report.build(run)


def summary(run: Path) -> Summary:
    return documents.read(RunDir(run).summary, Summary)


def text(found: CurveSummary, run: Path) -> str:
    (headline,) = curves_section.headlines(replace(summary(run), curves=[found]), {}).values()
    return headline.text


def test_the_first_sentence_says_up_to_which_rate_the_objective_was_met(page: report.Page) -> None:
    first, second = page.headlines
    stayed = "p99 stayed within 100 ms, with no errors, up to 1,200 requests/s"
    assert first.text == f"{AIOHTTP}: {stayed} on /agents."
    assert second.text.startswith(f"{AIOHTTP} did not hold 1,300 requests/s on /agents")
    assert (first.state, second.state) == ("held", "missed")
    (verdict,) = (
        text for text in blocks.find(Text, *page.sections) if text.css == "verdict missed"
    )
    assert second.anchor == verdict.anchor
    shown = [block.text for block in blocks.find(Headline, *page.answer)]
    assert shown == [
        first.text,
        second.text,
        f"{AIOHTTP} on /agents: {stayed}; at 1,300 requests/s: p99 312 ms is above 100 ms (each "
        "rate of the curve measured once, a missed one twice, 5 s). Not judged: 620 requests/s (1 "
        "void: steal).",
    ]


def test_without_a_valid_measurement_no_rate_is_marked_as_the_best(run: Path) -> None:
    measured = summary(run)
    steal = runs.voided(builders.result()).validity
    cells = [
        replace(cell, repetitions=[replace(rep, validity=steal) for rep in cell.repetitions])
        if cell.purpose == "measure"
        else cell
        for cell in measured.cells
    ]
    void = replace(measured, cells=cells)
    (curve,) = void.curves
    unmet = replace(void, curves=[replace(curve, within=None)])
    shown = [labels.entries([cell], {}) for cell in cells if cell.purpose == "measure"]
    assert figure.build(void, {}, *shown) == figure.build(unmet, {}, *shown)
    valid = labels.entries([cell for cell in measured.cells if cell.purpose == "measure"], {})
    met = replace(unmet, cells=measured.cells)
    assert figure.build(measured, {}, valid) != figure.build(met, {}, valid)


def test_each_outcome_of_a_curve_has_its_sentence(run: Path) -> None:
    (found,) = summary(run).curves
    met = replace(found, missed=None, undecided=[])
    assert text(met, run).endswith(
        "up to 1,200 requests/s, the highest measured (each rate of the curve measured once, "
        "a missed one twice, 5 s). Missed without deciding: 1,300 requests/s (1 of 1 measurement)."
    )
    void_above = replace(met, within=310, undecided=[620])
    assert "up to 310 requests/s, the highest that was judged (each" in text(void_above, run)
    none = replace(found, within=None, undecided=[])
    assert "no rate is known to meet p99 up to 100 ms and no errors; at 1,300" in text(none, run)
    assert "no rate of the curve could be judged. Not judged" in text(
        replace(found, within=None, missed=None), run
    )
    only = replace(found, slo={"p99_9_ms": 20.0, "errors": 0.01})
    assert "p99.9 stayed within 20 ms, with errors up to 1.0 %, up to 1,200" in text(only, run)


def test_a_sample_too_small_for_its_percentile_is_named(run: Path) -> None:
    (found,) = summary(run).curves
    trace = [
        replace(step, reasons=[replace(why, facts={**why.facts, "supported": False})])
        if step.rate == 310
        else step
        for step in found.trace
        for why in step.reasons[:1]
    ]
    told = text(replace(found, trace=trace), run)
    assert told.endswith("Too few requests to support the percentile at 310 requests/s.")


def test_the_figure_has_the_curve_and_the_asked_rate_on_its_axes(page: report.Page) -> None:
    section = page.sections[0]
    assert section.title == "p99 by offered rate on /agents"
    (plot,) = blocks.find(Figure, section)
    told = str(plot.svg)
    for rate in ("310/s", "930/s", "1,200/s", "1,300/s", "620/s void"):
        assert rate in told
    assert "<pattern" in told
    caption = blocks.find(Text, section)[0].text
    assert "Dashed: the objective, p99 up to 100 ms." in caption
    assert (
        "was measured once, for 5 s, so it has no band. Only a rate that missed was measured twice"
        in caption
    )


def test_a_p99_that_is_a_lower_bound_is_told_as_one(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "r", builders.plan(curve=True, endpoint="agents", rate=1300))
    found = summed(folder)
    cells = [
        replace(one, statistics=replace(one.statistics, latency_us=replace(
            one.statistics.latency_us, at_least=["p99", "max"])))
        if one.cell.load.rate == 1200 else one
        for one in found.cells
    ]  # fmt: skip
    documents.write(RunDir(folder).summary, documents.encode(replace(found, cells=cells)))
    table = cell_lines.table(summary(folder), {})
    assert "930/s 1.84, 1,200/s ≥ 1.84" in table
    assert "≥: at least, as some requests got no answer." in table
    section = report.build(folder).sections[0]
    assert "1,200/s ≥ 1.84 ms" in str(blocks.find(Figure, section)[0].svg)
    assert "A triangle up: a lower bound" in blocks.find(Text, section)[0].text


def test_curves_of_several_endpoints_are_in_one_figure(tmp_path: Path) -> None:
    plan = builders.plan(curve=True, endpoint="index,agents", rate=1300)
    folder = run_of(tmp_path / "r", plan)
    documents.write(RunDir(folder).summary, documents.encode(summed(folder)))
    page = report.build(folder)
    section = page.sections[0]
    assert section.title == "p99 by offered rate"
    assert [one.title for one in blocks.find(Figure, section)] == ["/agents", "/index"]
    assert blocks.find(Text, section)[0].text.startswith(
        "Each plot is an endpoint; all have the same axes"
    )
    assert [sum(path in one.text for path in ("/agents", "/index")) for one in page.headlines] == [
        2
    ] * 2


def test_a_curve_has_one_table_and_no_row_among_the_cells(page: report.Page) -> None:
    (overview,) = blocks.find(Results, *page.sections)
    assert len(overview.table.rows) == 1
    assert blocks.tables("Ranking on", *page.sections) == []
    assert len(blocks.find(CellSection, *page.sections)) == 1
    (curve,) = blocks.tables("Each rate of the curve", *page.sections)
    assert len(curve.rows) == 5
    shown = [[cell.text for cell in row.cells[:3]] for row in curve.rows]
    assert shown[0] == ["310", "25 %", "curve"]
    assert shown[-1] == ["1,300", "105 %", "rate asked for"]
    assert [row.css for row in curve.rows].count("void") == 1


def test_the_void_measurements_of_a_rate_are_one_row_and_one_sentence(run: Path) -> None:
    (found,) = summary(run).curves
    (void,) = (step for step in found.trace if step.rate == 620)
    more = [replace(void, repetition=number) for number in (1, 2, 3)]
    at = found.trace.index(void)
    trace = [*found.trace[:at], *more, *found.trace[at + 1 :]]
    whole = replace(summary(run), curves=[replace(found, trace=trace)])
    (headline,) = curves_section.headlines(whole, {}).values()
    assert headline.text.count("620 requests/s") == 1
    assert headline.text.endswith("Not judged: 620 requests/s (3 void: steal).")
    part = curves_section.blocks(whole, {}, "/agents")
    assert "Not judged" not in blocks.find(Text, *part)[0].text
    (row,) = (one for one in blocks.find(Table, *part)[0].rows if one.cells[0].text == "620")
    assert row.cells[-2].text.startswith("3 times void: steal: ")
    assert [one.text for one in row.cells[-1].links] == [f"rep-{n}/result.json" for n in (1, 2, 3)]


def test_a_rate_whose_p99_is_withheld_is_not_said_to_be_void(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "r", builders.plan(curve=True, endpoint="agents", rate=1300))
    path = paths(folder, "curve", 620)[0]
    rep = documents.read(path, Result)
    waits = replace(builders.present(rep.response_time), p99_us=312_000.0)
    latency = replace(builders.present(rep.latency_us), p99=None)
    change(path, latency_us=latency, response_time=waits)
    again = replace(rep, repetition=2, validity=runs.voided(builders.result()).validity)
    builders.store(folder, again)
    whole = summed(folder)
    (headline,) = curves_section.headlines(whole, {}).values()
    withheld = "p99 312 ms may be the generator's own, and is above 100 ms"
    assert headline.text.endswith(f" Not judged: 620 requests/s (1 void: steal; {withheld}).")
    (rates,) = blocks.find(Table, *curves_section.blocks(whole, {}, "/agents"))
    shown = [row.cells[-2].text for row in rates.rows if row.cells[0].text == "620"]
    assert [text.split(": 0")[0] for text in shown] == [withheld, "void: steal"]


def test_the_tile_names_the_highest_rate_of_the_curve(page: report.Page) -> None:
    (board,) = blocks.find(Board, *page.answer)
    shown = {one.name: one for one in board.tiles}
    assert shown["highest rate"].value == "1,200"
    assert shown["highest rate"].remark == (
        "with p99 up to 100 ms and no errors; p99 there 1.84 ms; missed at 1,300, the next rate "
        "measured"
    )
    assert shown["p99"].remark.startswith("at 1,300 requests/s")
    assert shown["p99"].remark.endswith("; 99 % of the answers took no longer")


def test_the_highest_rate_is_not_said_to_be_the_highest_where_higher_ones_are_void(
    run: Path,
) -> None:
    (found,) = summary(run).curves
    void = replace(summary(run), curves=[replace(found, within=310.0, undecided=[620.0])])
    (told,) = curves_section.within(void, {})
    assert told.text.endswith("up to 310 requests/s on /agents (higher rates not judged).")
    steps = [step for step in found.trace if step.rate == 310.0]
    missed = [replace(step, met=False) for step in steps]
    mostly = replace(found, within=310.0, trace=[*steps, *steps, *missed], undecided=[])
    (mixed,) = curves_section.within(replace(void, curves=[mostly]), {})
    assert mixed.text.endswith("(in 2 of 3 measurements, missed in the rest).")
    assert (told.state, mixed.state) == ("held", "inconclusive")
    measured = labels.entries([one for one in void.cells if one.purpose == "measure"], {})
    (board,) = tiles.build(void, measured, {})
    assert board.tiles[0].remark.endswith("; p99 there 1.84 ms; higher rates not judged")


@pytest.mark.parametrize(
    ("met", "states", "remark"),
    [
        ([True, True, True], ["held", "held"], "1 valid of 1"),
        ([True, True, False], ["inconclusive", "decided"], "; 2 of 3 within the objective"),
    ],
)
def test_a_rate_that_was_held_beside_a_missed_objective_is_not_green(
    tmp_path: Path, met: list[bool], states: list[str], remark: str
) -> None:
    folder = run_of(tmp_path / "r", builders.plan(curve=True, endpoint="agents", rate=500))
    whole = summed(folder)
    (curve,) = whole.curves
    (step,) = (step for step in curve.trace if step.rate == 500)
    trace = [replace(step, met=own) for own in met]
    curve = replace(curve, trace=trace, within=500.0, missed=None, undecided=[])
    documents.write(RunDir(folder).summary, documents.encode(replace(whole, curves=[curve])))
    page = report.build(folder)
    assert [headline.state for headline in page.headlines] == states
    (board,) = blocks.find(Board, *page.answer)
    (verdict,) = (tile for tile in board.tiles if tile.name == "verdict")
    assert verdict.remark.endswith(remark)
    assert verdict.state == states[-1]


def test_a_curve_is_one_line_of_the_terminal(run: Path) -> None:
    rows = cell_lines.table(summary(run), {}).splitlines()
    (line,) = [row for row in rows if "310/s" in row]
    assert line.startswith("/agents: p99 in ms by rate: 310/s 1.84, 930/s 1.84")
