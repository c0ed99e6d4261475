"""The page as a browser shows it: Chromium opens pages of simulated runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loadlab.kinds import page as report
from loadlab.model import CellSummary, Summary
from loadlab.report.render import render
from loadlab.report.words import labels
from loadlab.run import formatting
from tests import screenshots
from tests.browser import Browser
from tests.unit.report import runs

TEMPLATE = Path(__file__).parents[3] / "roles/report/templates/report.html.j2"
CELLS = 50


def written(run: Path) -> Path:
    path = run / "report.html"
    path.write_bytes(render(TEMPLATE, report.build(run)))
    return path


@pytest.fixture(autouse=True)
def usual_window(chromium: Browser) -> Iterator[None]:
    """The next test has the usual width and theme again, the script and the screen."""
    yield
    chromium.size(1300)
    chromium.call("Emulation.setEmulatedMedia", media="")
    chromium.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """The page of 50 cells at one rate."""
    run = tmp_path_factory.mktemp("many")
    summary = runs.many(run, CELLS, 1, 10)
    return written(run), summary


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """The page of two stacks at rising rates."""
    run = tmp_path_factory.mktemp("rates")
    steps = (250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0)
    summary = runs.at_rates(run, runs.STACKS[:2], steps)
    return written(run), summary


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one cell, whose second repetition is void."""
    run = tmp_path_factory.mktemp("single")
    results = [runs.result(runs.STACKS[0], "index", 1000.0, number) for number in (1, 2, 3)]
    runs.write(run, [results[0], runs.voided(results[1]), results[2]])
    return written(run)


def rows(chromium: Browser) -> list[dict[str, Any]]:
    """The rows of the table that are shown: texts, values and verdicts of the cells."""
    script = """[...document.querySelectorAll(".results tr[data-g]")].filter((row) => !row.hidden)
      .map((row) => ({
        anchor: row.querySelector("a").hash.slice(1),
        texts: [...row.cells].map((one) => one.firstChild.textContent),
        values: [...row.cells].map((one) => one.dataset.v ?? ""),
        ratios: [...row.cells].map((one) => one.dataset.r ?? ""),
      }))"""
    found: list[dict[str, Any]] = chromium.run(script)
    return found


def count(chromium: Browser, css: str) -> int:
    found: int = chromium.run(f"document.querySelectorAll({json.dumps(css)}).length")
    return found


def click(chromium: Browser, css: str) -> None:
    chromium.run(f"document.querySelector({json.dumps(css)}).click()")


def p99(chromium: Browser) -> list[float]:
    """The p99 of each row that is shown."""
    return [float(row["values"][5]) for row in rows(chromium)]


def test_pages_ask_for_nothing_and_have_no_error(
    chromium: Browser, many: tuple[Path, Summary], rates: tuple[Path, Summary], single: Path
) -> None:
    for path in (many[0], rates[0], single):
        chromium.open(path)
        chromium.point(600, 600)
        assert chromium.messages == []
        assert [url for url in chromium.requests if not url.startswith("data:")] == [
            path.resolve().as_uri()
        ]


def test_axe_finds_nothing_serious_in_a_report(
    chromium: Browser, rates: tuple[Path, Summary], single: Path
) -> None:
    for path, dark in ((rates[0], False), (single, False), (single, True)):
        chromium.size(1300, dark=dark)
        chromium.open(path)
        assert chromium.barriers() == []


def test_axe_finds_a_text_that_is_too_pale(chromium: Browser, single: Path) -> None:
    chromium.open(single)
    chromium.run("document.querySelector('h1').style.color = '#ddd'")
    assert [found.partition(":")[0] for found in chromium.barriers()] == ["color-contrast"]


def test_fifty_cells_are_painted_within_a_second(
    chromium: Browser, many: tuple[Path, Summary], single: Path
) -> None:
    assert single.stat().st_size < 1_000_000
    assert many[0].stat().st_size < 3_000_000
    # The best of several, as other work may use the machine.
    paints = []
    for _ in range(5):
        chromium.open(many[0])
        paints.append(
            chromium.run(
                "new Promise((done) => new PerformanceObserver((list) => "
                "done(list.getEntries()[0].startTime)).observe({type: 'paint', buffered: true}))"
            )
        )
    assert min(paints) < 1000, paints


def by_anchor(chromium: Browser, summary: Summary) -> dict[str, CellSummary]:
    """The cells of summary.json by the section that the page has of them."""
    cells = {cell.cell_id: cell for cell in summary.cells}
    found = chromium.run(
        """[...document.querySelectorAll(".cell")].map((one) =>
           [one.querySelector(".verdict").id,
            one.querySelector(".id").textContent.replace("Cell ", "")])"""
    )
    return {anchor: cells[cell_id] for anchor, cell_id in found}


def test_every_number_of_the_table_is_that_of_the_summary(
    chromium: Browser, many: tuple[Path, Summary]
) -> None:
    path, summary = many
    chromium.open(path)
    known, shown = by_anchor(chromium, summary), rows(chromium)
    assert len(shown) == len(known) == CELLS
    for row in shown:
        found = known[row["anchor"]].statistics
        assert found.goodput
        assert float(row["values"][3]) == pytest.approx(found.goodput.median, rel=1e-6)
        assert row["texts"][3] == formatting.rate(found.goodput.median)
        for column, name in ((4, "p50"), (5, "p99"), (7, "max")):
            us = getattr(found.latency_us, name)
            assert float(row["values"][column]) == pytest.approx(us / 1000, rel=1e-6)
            assert row["texts"][column] == formatting.ms(us)
    tiles = chromium.run(
        """[...document.querySelectorAll(".board")].map((one) => [
             one.querySelector("a").hash.slice(1),
             [...one.querySelectorAll("strong")].map((all) => all.firstChild.textContent.trim()),
           ])"""
    )
    assert len(tiles) == 5
    for anchor, values in tiles:
        found = known[anchor].statistics
        assert values[0] == formatting.asked(known[anchor].cell.load)
        assert values[1] == formatting.ms(found.latency_us.p99)


def test_a_curve_reads_as_the_summary_has_it(chromium: Browser, many: tuple[Path, Summary]) -> None:
    path, summary = many
    chromium.open(path)
    name, label = chromium.run(
        """(() => { const box = document.querySelector(".wide .fig"); box.focus();
           return [box.querySelector("g[data-s]").dataset.s, box.getAttribute("aria-label")] })()"""
    )
    assert f"{name} p99 " in label
    (cell,) = (one.cell for one in labels.entries(summary.cells, {}) if one.title == name)
    curve = cell.statistics.percentile_curve
    for index in range(12):
        chromium.press("ArrowRight")
        said = chromium.run("document.activeElement.querySelector('output').textContent")
        shown = re.fullmatch(r"([\d.]+) % are within: (.+) ([\d.,]+) ms", said)
        assert shown, said
        assert shown[2] == name
        percentile, us = curve[index]
        assert float(shown[1]) == pytest.approx(percentile, abs=0.02)
        assert float(shown[3].replace(",", "")) == pytest.approx(us / 1000, rel=0.006)


def test_the_choice_filters_compares_and_is_kept_in_the_address(
    chromium: Browser, many: tuple[Path, Summary]
) -> None:
    chromium.open(many[0])
    for name, value in (("framework", "flask"), ("framework", "django"), ("endpoint", "/index")):
        click(chromium, f".pills [name={name}][value='{value}']")
    unordered, ratios = p99(chromium), [row["ratios"][5] for row in rows(chromium)]
    assert len(unordered) == 4
    assert ratios.index("best") == unordered.index(min(unordered))
    assert ratios.count("best") == 1
    fragment = chromium.run("location.hash")
    assert fragment == "#?framework=flask&framework=django&endpoint=%2Findex"
    by_p99 = ".results thead th:nth-of-type(6) button"
    click(chromium, by_p99)
    ordered = sorted(unordered)
    assert p99(chromium) == ordered
    chromium.open(many[0], chromium.run("location.hash"))
    assert p99(chromium) == ordered
    assert count(chromium, ".pills [aria-pressed=true]") == 3
    click(chromium, by_p99)
    assert p99(chromium) == ordered[::-1]


def test_a_row_opens_to_its_repetitions(chromium: Browser, single: Path) -> None:
    chromium.open(single)
    visible = "document.querySelector('.results .more').getBoundingClientRect().height"
    assert chromium.run(visible) == 0
    click(chromium, ".results tbody button")
    assert chromium.run(visible) > 20
    assert count(chromium, ".more .dots") == 3
    assert count(chromium, ".more .dots:first-of-type :is(.dot, .cross)") == 3
    assert count(chromium, ".more .dots:first-of-type .cross") == 1
    assert count(chromium, ".more a[href$='rep-2/result.json']") == 1


def test_linked_plots_zoom_together_and_back(
    chromium: Browser, rates: tuple[Path, Summary]
) -> None:
    chromium.open(rates[0])
    plots = count(chromium, ".multiples .plot")
    assert plots == 2
    chromium.run("document.querySelectorAll('.multiples .fig')[1].focus()")
    said = "document.activeElement.querySelector('output').textContent"
    chromium.press("ArrowRight")
    assert chromium.run(said).startswith("at 250 requests/s")
    chromium.press("+")
    assert count(chromium, ".multiples .zoomed") == plots
    assert count(chromium, ".multiples .ticks text") == 4 * plots
    chromium.press("ArrowRight")
    assert chromium.run(said).startswith("at 500 requests/s")
    chromium.press("-")
    assert count(chromium, ".zoomed") == count(chromium, ".ticks text") == 0


def test_a_link_opens_what_is_folded(chromium: Browser, many: tuple[Path, Summary]) -> None:
    chromium.open(many[0])
    assert count(chromium, ".cell[open]") == 0
    for anchor in ("cell-7", "tuning"):
        click(chromium, f"a[href='#{anchor}']")
        opened = f"document.getElementById('{anchor}').closest('details').open"
        assert chromium.run(opened) is True


def test_a_legend_hides_its_curve(chromium: Browser, many: tuple[Path, Summary]) -> None:
    chromium.open(many[0])
    click(chromium, "button.key")
    assert count(chromium, "button.key[aria-pressed=false]") == 1
    hidden = chromium.run(
        "[...document.querySelectorAll('g.off')].map((one) => one.dataset.s + "
        "getComputedStyle(one).display)"
    )
    name = chromium.run("document.querySelector('button.key').dataset.k")
    assert set(hidden) == {f"{name}none"}


@pytest.mark.parametrize("width", [360, 1300, 2560, 3840])
def test_nothing_is_wider_than_the_window(
    chromium: Browser, many: tuple[Path, Summary], rates: tuple[Path, Summary], width: int
) -> None:
    chromium.size(width)
    for path in (many[0], rates[0]):
        chromium.open(path)
        assert chromium.run("document.documentElement.scrollWidth") == width
        wide = """[...document.querySelectorAll("table")].filter((one) =>
            one.closest(".box").getBoundingClientRect().right > innerWidth + 1).length"""
        assert chromium.run(wide) == 0
        if width >= 1300:
            scrolled = """[...document.querySelectorAll(".box")].filter((one) =>
                one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"""
            assert chromium.run(scrolled) == []


def test_without_script_and_in_print_the_figures_are_there(
    chromium: Browser, rates: tuple[Path, Summary]
) -> None:
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    chromium.open(rates[0])
    assert chromium.messages == []
    high = "document.querySelector('.multiples .plot').getBoundingClientRect().height"
    assert chromium.run(high) > 100
    assert chromium.run("getComputedStyle(document.querySelector('.pills')).display") == "none"
    assert count(chromium, ".results tr[data-g]") == count(chromium, ".cell")
    closed = "document.querySelector('.cell .plot').checkVisibility()"
    assert chromium.run(closed) is False
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert chromium.run(closed) is True


def test_the_dark_theme_is_dark(chromium: Browser, single: Path) -> None:
    light = {}
    for dark in (False, True):
        chromium.size(1300, dark=dark)
        chromium.open(single)
        light[dark] = [
            sum(map(int, re.findall(r"\d+", chromium.run(script))))
            for script in (
                "getComputedStyle(document.body).backgroundColor",
                "getComputedStyle(document.querySelector('.plot text')).fill",
                "getComputedStyle(document.querySelector('.plot .xt path')).stroke",
            )
        ]
    (paper, text, grid), (dark_paper, dark_text, dark_grid) = light[False], light[True]
    assert paper > 700 > grid > text
    assert dark_paper < 100 < dark_grid < dark_text


def test_the_script_is_small() -> None:
    assert len(TEMPLATE.with_name("report.js").read_bytes()) < 8192


def test_picture_of_a_report_goes_down_to_the_end_of_its_figure(
    chromium: Browser, rates: tuple[Path, Summary], tmp_path: Path
) -> None:
    screenshots.report(chromium, rates[0], tmp_path / "report.png")
    with Image.open(tmp_path / "report.png") as shot:
        width, height = shot.size
    assert width == screenshots.WIDTH
    below = chromium.run(
        "document.querySelector('section:has(> #stacks) + section').getBoundingClientRect().top"
    )
    plots = "[...document.querySelectorAll('section:has(> #stacks) svg')]"
    lowest = f"Math.max(...{plots}.map((one) => one.getBoundingClientRect().bottom))"
    assert chromium.run(lowest) <= height <= below


def test_page_without_a_figure_gives_no_picture(chromium: Browser, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    html.write_text("<!DOCTYPE html><main></main>")
    with pytest.raises(screenshots.NoPictureError, match="has no figure"):
        screenshots.report(chromium, html, tmp_path / "report.png")


def test_picture_of_a_terminal_has_its_last_rows_in_their_colours(
    chromium: Browser, tmp_path: Path
) -> None:
    def shown(lines: list[str]) -> tuple[tuple[int, int], set[object]]:
        picture = tmp_path / "terminal.png"
        screenshots.terminal(chromium, lines, picture)
        with Image.open(picture) as shot:
            found = shot.convert("RGB")
            return found.size, {colour for _, colour in found.getcolors(1 << 24) or []}

    rows, line = screenshots.ROWS, "\x1b[1;34m  <b> of the lab\x1b[0m"
    (width, full), colours = shown([line] * rows)
    assert (0x79, 0xC0, 0xFF) in colours
    assert shown(["\x1b[31mabove\x1b[0m", *[line] * rows]) == ((width, full), colours)
    # A line that is too long takes two rows.
    (_, one), (_, two) = (shown([text])[0] for text in (line, "x" * (screenshots.COLUMNS + 1)))
    assert full == pytest.approx(one + (rows - 1) * (two - one), abs=rows)


def test_run_without_a_report_gives_no_picture() -> None:
    with pytest.raises(screenshots.NoPictureError, match="name a finished run with run_id="):
        screenshots.finished("no-such-run")
