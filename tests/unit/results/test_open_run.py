import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import loadlab
from loadlab.kinds import derive_run
from loadlab.model import Result
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.builders import present

DOCS = builders.ROOT / "docs" / "notebook.md"


def test_a_run_opens_with_its_summary_cells_and_results() -> None:
    run = loadlab.open(builders.RUN)
    assert run.summary == builders.summary()
    assert [cell.cell_id for cell in run.cells] == [cell.cell_id for cell in run.summary.cells]
    results = list(run.results())
    assert all(isinstance(one, Result) for one in results)
    assert {one.cell_id for one in results} == {cell.cell_id for cell in run.cells}


def test_a_folder_without_a_summary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"has no summary\.json: give the folder of a run"):
        loadlab.open(tmp_path)


@pytest.mark.parametrize("void", [False, True])
def test_the_lines_of_the_notebook_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], void: bool
) -> None:
    run_dir = tmp_path / "results" / "latest"
    shutil.copytree(builders.RUN, run_dir)
    if void:
        second = builders.result(repetition=2, validity=builders.void("steal", "link"))
        builders.store(run_dir, second)
    builders.write_plan(run_dir, builders.plan())
    derive_run.summary(run_dir)
    monkeypatch.chdir(tmp_path)
    assert loadlab.open(run_dir).to_pandas().equals(pd.read_csv(run_dir / "cells.csv"))
    for code in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
        assert len(code.splitlines()) <= 10
        exec(compile(code, DOCS.name, "exec"), {})
    shown = capsys.readouterr().out
    result = builders.result()
    p99 = present(present(result.latency_us).p99) / 1000
    goodput = present(result.goodput)
    assert f"{builders.NAME}: {goodput:,.0f} requests/s, p99 {p99:.1f} ms\n" in shown
    assert re.search(rf"{builders.NAME} +1 +{p99} +{p99} +{p99}\n", shown)
    assert re.search(rf"{builders.NAME} +{goodput:.6f} ", shown)
    assert (re.search(rf"{builders.NAME} +steal link +1\n", shown) is not None) is void
