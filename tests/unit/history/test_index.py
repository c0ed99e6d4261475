"""results/index.html: all runs and each cell over time, and the folder that is published."""

import re
import shutil
from pathlib import Path

import pytest

from loadlab.history import site
from loadlab.history.index import index_page as index
from loadlab.kinds import page as report
from loadlab.model import Summary
from loadlab.report.html import Figure, Results, Table, Text
from loadlab.report.render import render
from loadlab.report.sections.cells_section import CellSection
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.browser import Browser
from tests.unit import builders
from tests.unit.history import pasts
from tests.unit.report import blocks

REPORT = index.TEMPLATE.with_name("report.html.j2")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve runs with a step and a change, a broken one, and a folder without a run."""
    found = tmp_path_factory.mktemp("results")
    pasts.history(found)
    (found / "broken").mkdir()
    (found / "broken" / "plan.json").write_text('{"schema": "lab/3", ')
    (found / "<b>odd" / "cells").mkdir(parents=True)
    written(found)
    return found


def written(results: Path) -> Path:
    path = results / "index.html"
    path.write_bytes(render(index.TEMPLATE, index.build(results)))
    return path


def test_the_page_has_a_row_for_every_run_and_a_link_to_each_report(results: Path) -> None:
    (shown,) = blocks.find(Results, *index.build(results).sections)
    table = shown.table
    found = {row.cells[0].text: row for row in table.rows}
    assert list(found)[:2] == ["run-12", "run-11"]
    assert len(found) == 14
    assert found["run-12"].cells[0].href == "run-12/report.html"
    assert found["broken"].cells[0].href == ""
    texts = [cell.text for cell in found["run-12"].cells]
    assert texts[1:5] == [
        "aiohttp",
        "/agents 944/s of 1,000 asked, p99 694 ms; /index 1,000/s held, p99 2.40 ms",
        "0 of 2",
        "2026-11-13 12:00",
    ]
    assert texts[-2:] == ["0.2.0, 85e66e59875f", "finished"]
    assert found["run-07"].cells[3].text == "2 of 2"
    assert "held 1,000 requests/s on /index" in found["run-12"].more
    assert "plan.json is truncated" in found["broken"].more
    assert table.facets == {"state": ["finished", "broken"]}


def test_a_cell_over_time_tells_steps_and_changes_in_words_and_in_the_figure(results: Path) -> None:
    _, cell = blocks.find(CellSection, *index.build(results).sections)
    assert cell.title == "aiohttp on Gunicorn on /index, 1,000/s"
    step, change = (text.text for text in blocks.find(Text, cell)[1:])
    assert re.fullmatch(
        r"run-09 to run-11 are slower than the 3 runs before: "
        r"p50 \+30 % \(.+ to .+ %\), p99 \+30 % \(.+\)\.",
        step,
    )
    assert change == (
        "Changed before run-05: client: kernel 6.18.1 to 6.18.2, server: kernel 6.18.1 to 6.18.2."
    )
    (figure,) = blocks.find(Figure, cell)
    titles = re.findall("<title>(.*?)</title>", str(figure.svg))
    assert len(titles) == 12 + 1
    assert titles[0] == (
        "run-01, 2026-11-02 12:00: p99, ms 1.86; Saturation, /s 7,280; "
        "p99 95 % interval 1.69 to 2.12 ms"
    )
    assert titles[6].endswith("void")
    assert titles[-1] == change.removesuffix(".")
    last = [row.cells[-1].text for row in blocks.find(Table, cell)[0].rows]
    assert [text for text in last if text] == [step.partition(" are ")[2].removesuffix(".")]


def test_a_cell_over_time_tells_a_lower_bound_as_one(tmp_path: Path) -> None:
    for day, run_id in enumerate(("first", "second"), start=1):
        run = RunDir(pasts.write(tmp_path, run_id, day))
        summary = documents.read(run.summary, Summary)
        for cell in summary.cells:
            cell.statistics.latency_us.at_least.append("p99")
        documents.write(run.summary, documents.encode(summary))
    *_, section = blocks.find(CellSection, *index.build(tmp_path).sections)
    (figure,) = blocks.find(Figure, section)
    assert "p99, ms ≥ 1.84; " in str(figure.svg)
    shown = {row.cells[0].text: row.cells[4].text for row in blocks.find(Table, section)[0].rows}
    assert shown == {"first": "≥ 1.84", "second": "≥ 1.84"}


def test_the_same_runs_give_the_same_page_and_a_removed_run_is_gone(
    results: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(results, tmp_path / "copy"))
    assert written(copy).read_bytes() == (results / "index.html").read_bytes()
    shutil.rmtree(copy / "run-03")
    assert b"run-03" not in written(copy).read_bytes()


def test_no_run_gives_a_page_without_cells(tmp_path: Path) -> None:
    assert blocks.find(CellSection, *index.build(tmp_path).sections) == []
    assert b"no runs" in written(tmp_path).read_bytes()


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_site_has_every_report_and_no_dead_link(results: Path, tmp_path: Path) -> None:
    run = RunDir(pasts.write(tmp_path / "results", "a-run", 1))
    shutil.copytree(builders.RUN / "cells", run.path / "cells")
    documents.write(run.report, render(REPORT, report.build(run.path)))
    pasts.write(tmp_path / "results", "unfinished", 1)
    (tmp_path / "results" / "unfinished" / "report.html").unlink()
    run.bundle.write_bytes(b"packed")
    to = tmp_path / "site"
    pages = site.write(run.path.parent, to)
    assert files(to) == {"index.html", "a-run.tar.gz", "a-run/report.html"}
    assert 'href="a-run.tar.gz"' in (to / "index.html").read_text()
    assert 'href="summary.json"' in run.report.read_text()
    assert "From summary.json." in (to / "a-run" / "report.html").read_text()
    for path in pages:
        for href in re.findall(r'href="([^"#][^"]*)"', path.read_text()):
            if not href.startswith(("http", "data:")):
                assert (path.parent / href).exists(), href
    assert 'href="a-run/report.html"' in (to / "index.html").read_text()


def test_a_site_drops_removed_runs_and_keeps_other_files(tmp_path: Path) -> None:
    results, to = tmp_path / "results", tmp_path / "site"
    for run_id in ("one", "two", "three"):
        run = RunDir(pasts.write(results, run_id, 1))
        documents.write(run.report, render(REPORT, report.build(run.path)))
        run.bundle.touch()
    site.write(results, to)
    (to / "two" / "note.txt").touch()
    (to / "mine.tar.gz").touch()
    (to / "mine").mkdir()
    (to / "mine" / "report.html").write_text("<!doctype html>")
    for run_id in ("one", "two"):
        shutil.rmtree(results / run_id)
        (results / f"{run_id}.tar.gz").unlink()
    site.write(results, to)
    mine = {"mine.tar.gz", "two/note.txt", "mine/report.html"}
    assert files(to) == {"index.html", "three/report.html", "three.tar.gz", *mine}


def test_a_site_is_not_written_where_it_would_spoil_something(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with pytest.raises(ValueError, match="no run was begun yet"):
        site.write(results, tmp_path / "site")
    run = pasts.write(results, "one", 1)
    for to in (results, run, results / "site"):
        with pytest.raises(ValueError, match="give another folder"):
            site.write(results, to)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<!doctype html>")
    with pytest.raises(ValueError, match="has other files"):
        site.write(results, tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "<!doctype html>"


def shown(chromium: Browser, css: str) -> list[str]:
    """The first texts of the elements that are visible."""
    found: list[str] = chromium.run(
        f"[...document.querySelectorAll({css!r})].filter((one) => one.checkVisibility())"
        ".map((one) => one.querySelector('a, th, h3').textContent.replace('▸', ''))"
    )
    return found


ROWS, CELLS = ".results tr[data-g]", ".cell"


def test_the_search_finds_runs_and_cells_and_is_kept_in_the_address(
    chromium: Browser, results: Path
) -> None:
    chromium.open(results / "index.html")
    assert chromium.messages == []
    assert chromium.requests == [(results / "index.html").as_uri()]
    assert len(shown(chromium, ROWS)) == 14
    assert len(shown(chromium, CELLS)) == 2
    chromium.run("document.querySelector('.search input').focus()")
    chromium.call("Input.insertText", text="RUN-1 finished")
    assert shown(chromium, ROWS) == ["run-12", "run-11", "run-10"]
    assert shown(chromium, CELLS) == []
    fragment = chromium.run("location.hash")
    chromium.open(results / "index.html", fragment)
    assert shown(chromium, ROWS) == ["run-12", "run-11", "run-10"]
    chromium.open(results / "index.html", "#?words=%2Findex+1%2C000%2Fs&state=broken")
    assert shown(chromium, ROWS) == []
    assert len(shown(chromium, CELLS)) == 1
    chromium.open(results / "index.html", "#?sort=5")
    assert shown(chromium, ROWS)[0] == "run-01"


def test_axe_finds_nothing_serious_in_the_index(chromium: Browser, results: Path) -> None:
    chromium.open(results / "index.html")
    assert chromium.barriers() == []


def test_a_row_opens_to_its_sentences(chromium: Browser, results: Path) -> None:
    chromium.open(results / "index.html")
    high = "document.querySelector('.results .more').getBoundingClientRect().height"
    assert chromium.run(high) == 0
    chromium.run("document.querySelector('.results tbody button').click()")
    assert chromium.run(high) > 20


@pytest.mark.parametrize("width", [360, 1300])
def test_the_index_is_as_wide_as_the_window(chromium: Browser, results: Path, width: int) -> None:
    chromium.size(width)
    try:
        chromium.open(results / "index.html")
        assert chromium.run("document.documentElement.scrollWidth") == width
    finally:
        chromium.size(1300)


def test_without_script_the_index_has_all_but_the_search(chromium: Browser, results: Path) -> None:
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(results / "index.html")
        assert len(shown(chromium, ROWS)) == 14
        drawn = (
            "[...document.querySelectorAll('.cell .plot')].filter((one) => one.checkVisibility())"
        )
        assert chromium.run(f"{drawn}.length") == 2
        display = "getComputedStyle(document.querySelector('.search')).display"
        assert chromium.run(display) == "none"
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)
