from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.core.errors import PlanError
from loadlab.planning import inputs

CELL = {"endpoint": "index", "tuning": "stock", "network": "lan", "load": {"rate": 1}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("apps/alpha/app.py", "apps/alpha/requirements.txt", "files/python/work.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def plan(**changed: Any) -> dict[str, Any]:
    app = {"language": "python", "endpoints": ["index"]}
    return {
        "stacks": {"a": {"framework": "alpha", "app": app}},
        "endpoints": {"index": {"path": "/index"}, "slow": {"path": "/slow"}},
        "tunings": {"stock": {"sysctl": []}},
        "networks": {"lan": {"delay": 0}},
        **changed,
    }


def defined(
    root: Path, asked: dict[str, Any] | None = None, lab: str | None = "1a2b", **load: Any
) -> dict[str, Any]:
    item: dict[str, Any] = {
        "cell_id": "x", "stack": "a", "cell": {**CELL, "load": {**CELL["load"], **load}},  # type: ignore[dict-item]
    }  # fmt: skip
    inputs.define(root, asked or plan(), [item], lab)
    return item


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("endpoint", plan(endpoints={"index": {"path": "/other"}, "slow": {"path": "/slow"}})),
    ("tuning", plan(tunings={"stock": {"sysctl": [{"key": "a.b", "value": 1}]}})),
    ("network", plan(networks={"lan": {"delay": 1}})),
]


@pytest.mark.parametrize(("part", "other"), CHANGES)
def test_a_change_is_refused_by_its_name(root: Path, part: str, other: dict[str, Any]) -> None:
    before, now = defined(root), defined(root, other)
    differs = [
        key for key in before["definition"] if before["definition"][key] != now["definition"][key]
    ]
    assert differs == [part]
    records = {"x": [{"definition": before["definition"], "cell": before["cell"]}]}
    inputs.check("mine", [before], records)
    with pytest.raises(PlanError) as refusal:
        inputs.check("mine", [now], records)
    words = str(refusal.value)
    assert f"'mine' has results of x with another {part} than now" in words
    assert "give another -e run_id=<name>" in words


@pytest.mark.parametrize(
    "name", ["apps/alpha/app.py", "apps/alpha/requirements.txt", "files/python/work.py"]
)
def test_every_file_of_the_application_counts(root: Path, name: str) -> None:
    before = defined(root)
    (root / name).write_text(yaml.safe_dump({"changed": True}))
    now = defined(root)
    assert before["definition"].pop("application") != now["definition"].pop("application")
    assert before == now


def test_what_is_asked_beside_counts(root: Path) -> None:
    assert defined(root)["definition"] != defined(root, beside="slow")["definition"]


def test_what_an_earlier_version_did_not_say_is_not_held_against_it(root: Path) -> None:
    now = defined(root)
    inputs.check("mine", [now], {"x": [{"repetition": 1, "error": "x"}]})
    inputs.check("mine", [now], {"x": [{"definition": None, "cell": now["cell"]}]})
    with pytest.raises(PlanError, match="another cell than now"):
        inputs.check("mine", [now], {"x": [{"cell": {**CELL, "about": ["steal"]}}]})


def test_another_revision_of_the_lab_is_told_and_not_refused(root: Path) -> None:
    before, now = defined(root), defined(root, lab="3c4d+")
    assert before["definition"] != now["definition"]
    kept: list[dict[str, Any]] = [{**before, "repetition": 1}, {**before, "repetition": 2}]
    inputs.check("mine", [now], {"x": kept})
    assert inputs.labs(kept) == {}
    unknown: list[dict[str, Any]] = [{"repetition": 3}, {"repetition": 4, "definition": None}]
    assert inputs.labs([*kept, *unknown, {**defined(root, lab=None), "repetition": 5}]) == {}
    both = [*kept, *unknown, {**now, "repetition": 5}]
    assert inputs.labs(both) == {"1a2b": [1, 2], "3c4d+": [5]}
