"""The arguments of the lab's actions, as the roles and playbooks give them."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec
import pytest
import yaml
from ansible.plugins.action import ActionBase
from ansible_collections.lab.bench.plugins.action import document, verdict, watch
from ansible_collections.lab.bench.plugins.plugin_utils import controller

from loadlab.run.errors import LabError

ROOT = Path(__file__).parents[2]
PACKAGE = "ansible_collections.lab.bench.plugins.action"
ACTIONS = {path.stem for path in (ROOT / "collections" / PACKAGE.replace(".", "/")).glob("*.py")}


def calls(content: Any) -> Iterator[tuple[str, Any]]:
    """Every call of an action in a YAML file, with its arguments."""
    for value in content if isinstance(content, list) else [content]:
        if isinstance(value, dict):
            for key, child in value.items():
                if str(key).startswith("lab.bench."):
                    yield key.removeprefix("lab.bench."), child
                yield from calls(child)
        elif isinstance(value, list):
            yield from calls(value)


CALLS = [
    (path.relative_to(ROOT).as_posix(), name, arguments)
    for folder in ("playbooks", "roles")
    for path in (ROOT / folder).rglob("*.yml")
    if path.parent.name in ("playbooks", "tasks")
    for name, arguments in calls(yaml.safe_load(path.read_text()))
]


def test_every_action_is_called() -> None:
    assert len(ACTIONS) > 30
    assert {name for _, name, _ in CALLS} == ACTIONS


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_calls_give_what_an_action_takes(name: str) -> None:
    """Checked here, as Ansible has no module whose documentation it could compare."""
    record: Any = get_type_hints(import_module(f"{PACKAGE}.{name}").ActionModule.work)["args"]
    required = [field.name for field in msgspec.structs.fields(record) if field.required]
    for path, called, arguments in CALLS:
        if called == name:
            assert set(arguments) <= set(record.__struct_fields__), path
            assert set(required) <= set(arguments), path


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        (verdict, {}, "Object missing required field `run_dir`"),
        (verdict, {"run_dir": "x", "dir": "y"}, "the action has no argument dir"),
        (document, {"path": "x", "content": "y"}, "Expected `object`, got `str` - at `$.content`"),
        (watch, {"scrape": {"x": {}}}, "Object missing required field `name` - at `$.scrape[...]`"),
    ],
)
def test_wrong_arguments_are_named(action: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        action.ActionModule.arguments(arguments)


def test_arguments_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    arguments = verdict.ActionModule.arguments({"run_dir": "~/run", "undecided_fails": "true"})
    assert (arguments.run_dir, arguments.undecided_fails) == (Path("/home/me/run"), True)
    # As Ansible has it, nothing stands for the default.
    assert not verdict.ActionModule.arguments(
        {"run_dir": "x", "undecided_fails": None}
    ).undecided_fails


def test_a_refusal_fails_the_task_with_its_text_and_a_bug_is_not_shown_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    action: Any = controller.ControllerAction.__new__(controller.ControllerAction)
    action._task = SimpleNamespace(args={})

    def work(error: ValueError) -> None:
        raise error

    monkeypatch.setattr(action, "act", lambda _: work(LabError("rate: give a lower one.")))
    assert action.run() == {"failed": True, "msg": "rate: give a lower one."}
    monkeypatch.setattr(action, "act", lambda _: work(ValueError("math domain error")))
    with pytest.raises(ValueError, match="math domain error"):
        action.run()
