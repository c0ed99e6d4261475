from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.plugin_utils import controller

from loadlab.generators.load_run import LoadRunInput
from loadlab.plan.request import Request

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
