from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.lab.bench.plugins.plugin_utils import controller

from loadlab.generators.load_run import LoadRunInput
from loadlab.plan.request import Request
from loadlab.run.errors import PlanError

PACKAGE = "ansible_collections.lab.bench.plugins.action"
COLLECTIONS = Path(__file__).parents[2] / "collections"
ACTIONS = sorted(COLLECTIONS.glob(f"{PACKAGE.replace('.', '/')}/*.py"))


def test_there_are_actions() -> None:
    assert len(ACTIONS) > 10


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.stem)
def test_an_action_takes_what_is_documented(path: Path) -> None:
    """What is documented is what is checked: an option that nobody reads would be demanded."""
    options = controller.options(f"{PACKAGE}.{path.stem}")
    text = path.read_text()
    if "Ec2Action" in text:
        text += (path.parents[1] / "plugin_utils" / "aws.py").read_text()
    taken = set(re.findall(r"""\bargs\[["'](\w+)["']\]""", text))
    if path.stem == "plan":
        # Handed on as they are.
        taken |= set(Request.__struct_fields__) - {"now", "lab", "generator"}
    if path.stem == "begin_repetition":
        taken |= set(LoadRunInput.__struct_fields__)
    assert taken == set(options)
    for name, option in options.items():
        assert {"description", "type"} <= set(option), name
        assert set(option) <= {"description", "type", "elements", "required", "default"}, name


def test_a_refusal_fails_the_task_with_its_text_and_a_bug_is_not_shown_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    monkeypatch.setattr(controller, "options", lambda _: {})
    action: Any = controller.ControllerAction.__new__(controller.ControllerAction)
    monkeypatch.setattr(action, "validate_argument_spec", lambda _: (None, {}), raising=False)

    def work(error: ValueError) -> None:
        raise error

    monkeypatch.setattr(action, "work", lambda _: work(PlanError("rate: give a lower one.")))
    assert action.run() == {"failed": True, "msg": "rate: give a lower one."}
    monkeypatch.setattr(action, "work", lambda _: work(ValueError("math domain error")))
    with pytest.raises(ValueError, match="math domain error"):
        action.run()
