"""The runs of injected limits, which tests/lab measures: the planner takes each of their cells."""

from pathlib import Path

import pytest
import yaml

from loadlab.plan.plan_document import items
from tests.lab.limit_cases import CASES
from tests.lab.test_limits import content
from tests.unit import builders

ROOT = builders.ROOT


@pytest.mark.parametrize("run", dict.fromkeys(case.run for case in CASES.values()))
def test_planner_takes_every_cell_of_a_run(run: str, tmp_path: Path) -> None:
    cases = {name: case for name, case in CASES.items() if case.run == run}
    for folder in ("apps", "files"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).iterdir():
            if path.name != "studies":
                (tmp_path / folder / path.name).symlink_to(path)
    (tmp_path / "results").mkdir()
    studies = tmp_path / "files" / "studies"
    studies.mkdir()
    cells = [case.of_study(name, tmp_path) for name, case in cases.items()]
    (studies / "one.yml").write_text(yaml.safe_dump(content(cells)))
    planned = items(builders.plan(tmp_path, study="one").experiments)
    # No two of them are the same cell.
    measured = {item.cell_id for item in planned if item.purpose == "measure"}
    assert len(measured) == len(cases)
    assert {case.control for case in cases.values()} <= {"", *cases}
