"""Lanes of a measurement: what roles/measure sets up for them, and hands to the load."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import asdict

from loadlab.plan import check_options
from loadlab.plan.schedule import PlacedItem
from loadlab.stacks import stacks
from tests.unit import builders, plays

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "measure"
SAY = """
- name: Say
  ansible.builtin.raw: echo {{ %s | to_json | quote }} >>{{ playbook_dir }}/said-{{ set_up }}
"""


def stack(framework: str, **given: Any) -> Any:
    """Return a stack as a plan's file has it."""
    values = check_options.options(builders.SPECS, {"framework": framework, **given})
    return msgspec.to_builtins(stacks.stack(ROOT, values, None))


STACKS = {
    "base": stack("aiohttp"),
    "head": stack("flask", reverse_proxy="none", transport="tcp", protocol="http"),
}
CELL = builders.cell(tuning="stock", network="none", endpoint="agents")


def lane(place: int, name: str, cell_id: str) -> dict[str, Any]:
    """Return an item of a load as a plan's file has it."""
    item = asdict(builders.item(stack=name, cell_id=cell_id, cell=CELL))
    placed: dict[str, Any] = msgspec.to_builtins(PlacedItem(**item, repetition=2, place=place))
    return placed


LANES = [lane(2, "base", "a"), lane(1, "head", "b"), lane(3, "base", "control")]


# Set-up -> lanes, stacks that are kept, what the measurement switches, and the variables asked for.
BOTH = ["base-stock", "head-stock"]
SET_UPS: dict[str, tuple[list[dict[str, Any]], list[str], dict[str, str], list[str]]] = {
    "new": (LANES, [], {}, []),
    "kept": (
        LANES,
        BOTH,
        {},
        [
            "__measure_served_lanes | map(attribute='offered')",
            "__measure_units",
            "__measure_restarted",
            "__measure_needed",
        ],
    ),
    "tuned": (LANES, BOTH, {"tuning": "stock"}, []),
    "alone": ([], [], {}, ["__measure_units", "__measure_restarted"]),
}
Said = dict[str, list[Any]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """Set the stacks of each measurement up, in one start of Ansible; return in JSON what it did,
    and its variables."""
    folder = tmp_path_factory.mktemp("lanes")
    # Within a role its folder is that of the tree.
    (folder / "files").symlink_to(ROOT / "files")
    shutil.copy(ROLE / "tasks" / "set_up.yml", folder)
    (folder / "switch.yml").write_text(SAY % "__measure_stack_name")
    for role, name, text in (
        ("stack", "places", SAY % "stack_places"),
        ("tuning", "main", SAY % "'tuned'"),
    ):
        tasks = folder / "roles" / role / "tasks"
        tasks.mkdir(parents=True)
        (tasks / f"{name}.yml").write_text(text)
    server = {**plays.LOCAL, "test_address": "10.0.0.2"}
    groups = {name: {"hosts": {"server": server}} for name in ("servers", "lab")}
    done = plays.run(folder, {"all": {"children": groups}}, *map(play, SET_UPS))
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        name: [json.loads(line) for line in (folder / f"said-{name}").read_text().splitlines()]
        for name in SET_UPS
    }


def play(set_up: str) -> dict[str, Any]:
    lanes, kept, switch, asked = SET_UPS[set_up]
    item = {
        **lane(0, "base", "a"),
        "switch": {"stack": "base", "tuning": None, "network": None, **switch},
        "position": 1,
        "total": 1,
        "lanes": lanes,
    }
    plan: dict[str, Any] = {
        "run_dir": "/run1",
        "matrix": None,
        "stacks": STACKS,
        "endpoints": {"agents": {"path": "/agents"}},
        "tunings": {"stock": {}},
        "networks": {"none": {}},
    }
    role_variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    return {
        "hosts": "servers",
        "vars": {
            **role_variables,
            "role_path": str(ROLE),
            "measure_plan": plan,
            "host_check_pair": {"client": "server", "server": "server", "hosts": ["server"]},
            "set_up": set_up,
        },
        "tasks": [
            {"ansible.builtin.set_fact": {"measure_next": {"item": item}, "stack_kept": kept}},
            {"ansible.builtin.include_tasks": "set_up.yml"},
            *(yaml.safe_load(SAY % name)[0] for name in asked),
        ],
    }


def placed(answer: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    return [
        (entry["place"], entry["stack_name"], entry["definition"]["framework"]) for entry in answer
    ]


def test_stacks_that_are_not_kept_are_set_up_once_before_they_get_places(said: Said) -> None:
    first, second, there = said["new"]
    assert (first, second) == ("base-stock", "head-stock")
    assert placed(there) == [
        (2, "base-stock", "aiohttp"),
        (1, "head-stock", "flask"),
        (3, "base-stock", "aiohttp"),
    ]
    there, *_ = said["kept"]
    assert len(there) == 3


def test_another_tuning_sets_all_up_after_it(said: Said) -> None:
    assert said["tuned"][:-1] == ["tuned", *BOTH]


def test_a_load_gets_what_each_lane_needs(said: Said) -> None:
    _, offered, units, restarted, needed = said["kept"]
    assert offered[1] == {
        "place": 1,
        "cell_id": "b",
        "repetition": 2,
        "purpose": "measure",
        "base": None,
        "cell": msgspec.to_builtins(CELL),
        "input_hashes": None,
        "dir": "/run1/cells/b/rep-2",
        "url": "http://10.0.0.2:8101/agents",
        "status": "",
        "units": {"application-1": "loadlab-app-1.service", "postgresql": "postgresql@*.service"},
    }
    assert [one["url"] for one in offered] == [
        "http://10.0.0.2:8202/agents",
        "http://10.0.0.2:8101/agents",
        "http://10.0.0.2:8203/agents",
    ]
    assert restarted == [unit for unit in units.values() if unit != "postgresql@*.service"]
    assert len(restarted) == 5
    # In any order, as Ansible intersects sets.
    assert sorted(needed) == ["loadlab-upstream", "nginx", "postgresql"]


def test_a_measurement_without_lanes_is_as_ever(said: Said) -> None:
    name, units, restarted = said["alone"]
    assert name == "base-stock"
    assert units["application"] == "loadlab-app.service"
    assert restarted == ["loadlab-app"]
