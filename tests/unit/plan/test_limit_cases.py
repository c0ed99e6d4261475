"""The cells whose limit is known, which tests/lab measures: the planner takes each of them."""

from pathlib import Path

import pytest
import yaml

from loadlab.plan.plan_document import items
from tests.lab.test_limits import CASES, content
from tests.unit import builders

ROOT = builders.ROOT


@pytest.mark.parametrize("name", CASES)
def test_planner_takes_the_cell_of_a_limit(name: str, tmp_path: Path) -> None:
    for folder in ("apps", "files"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).iterdir():
            if path.name != "studies":
                (tmp_path / folder / path.name).symlink_to(path)
    (tmp_path / "results").mkdir()
    studies = tmp_path / "files" / "studies"
    studies.mkdir()
    (studies / "one.yml").write_text(yaml.safe_dump(content(CASES[name], tmp_path)))
    planned = items(builders.plan(tmp_path, study="one").experiments)
    assert [item.purpose for item in planned].count("measure") == 1
