"""The cells whose limit is known, which tests/lab measures: the planner takes each of them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import yaml

from loadlab.kinds import plan_run as plans
from loadlab.plan.plan_document import items
from loadlab.plan.user_options import Request
from tests.lab.test_limits import CASES, content
from tests.unit import builders

ROOT = Path(__file__).parents[3]


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
    ask = Request(
        root=tmp_path,
        specs=builders.SPECS,
        given={"study": "one", "curve": False},
        now=datetime.datetime(2026, 11, 20),
        python="3.13",
    )
    planned = items(plans.plan(ask).experiments)
    assert [item.purpose for item in planned].count("measure") == 1
