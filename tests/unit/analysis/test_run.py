from __future__ import annotations

import re
from pathlib import Path

import pytest

import loadlab
from loadlab.core.errors import ResultError
from loadlab.core.model import Result
from tests.unit import builders

DOCS = builders.ROOT / "docs" / "notebook.md"


def test_a_run_opens_with_its_summary_cells_and_results() -> None:
    run = loadlab.open(builders.RUN)
    assert run.summary == builders.summary()
    assert [cell.cell_id for cell in run.cells] == [cell.cell_id for cell in run.summary.cells]
    results = list(run.results())
    assert all(isinstance(one, Result) for one in results)
    assert {one.cell_id for one in results} == {cell.cell_id for cell in run.cells}


def test_a_row_has_a_repetition_with_units_in_its_names() -> None:
    rows = loadlab.open(str(builders.RUN)).rows()
    (row,) = [one for one in rows if one["cell_id"] == builders.NAME]
    rep = builders.repetition()
    assert rep.latency_us is not None
    assert (row["framework"], row["rate_per_s"], row["valid"]) == ("aiohttp", 1000, True)
    assert (row["goodput_per_s"], row["latency_p99_us"]) == (rep.goodput, rep.latency_us.p99)
    assert row["errors_timeout"] == 0
    # Every repetition has the same columns.
    assert len({tuple(one) for one in rows}) == 1


def test_a_folder_without_a_summary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"has no summary\.json: give the folder of a run"):
        loadlab.open(tmp_path)


def test_a_table_without_pandas_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas, or use rows"):
        loadlab.open(builders.RUN).to_pandas()


def test_the_lines_of_the_notebook_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "latest").symlink_to(builders.RUN)
    monkeypatch.chdir(tmp_path)
    (code, table) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 10
    exec(compile(code, DOCS.name, "exec"), {})
    shown = capsys.readouterr().out
    assert builders.NAME in shown
    assert "p99" in shown
    assert "to_pandas()" in table
