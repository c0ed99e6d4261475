"""What decides what is deployed follows from the roles themselves."""

import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.filter import filters

from loadlab.run import fingerprint
from loadlab.run.catalog import load_yaml
from tests.unit import stand_ins

ROOT = Path(__file__).parents[3]
PLAYBOOK = "playbooks/deploy.yml"
FILTERS = "collections/ansible_collections/lab/bench/plugins/filter/filters.py"


def values(content: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, however deep."""
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, dict):
            yield from one.items()
            for value in one.values():
                yield from values(value)


def included(path: Path) -> set[str]:
    found = set()
    for key, value in values(load_yaml(path)):
        if key.endswith(("include_role", "import_role")):
            found.add(value["name"])
        if key == "role":
            found.add(value)
    return found


def deployed() -> set[str]:
    """The roles of the play that deploys, with those that they include."""
    plays = load_yaml(ROOT / PLAYBOOK)
    (play,) = (one for one in plays if one["name"] == "Deploy")
    found = {value["name"] for key, value in values(play) if key.endswith("include_role")}
    left = found | {one["role"] for one in play["roles"]}
    found = set()
    while left:
        role = left.pop()
        found.add(role)
        files = (ROOT / "roles" / role).glob("*/*.yml")
        left |= {name for path in files for name in included(path)} - found
    return found


def paths(root: Path = ROOT) -> set[str]:
    return {
        path
        for part in ("roles", "tasks")
        for path in fingerprint.of_play(root, PLAYBOOK, "Deploy", part)
    }


@pytest.fixture(scope="module")
def found() -> set[str]:
    return paths()


def test_every_role_that_is_deployed_is_an_input(found: set[str]) -> None:
    names = deployed()
    assert len(names) > 8
    assert {f"roles/{name}" for name in names} <= found


@pytest.mark.parametrize("role", sorted(deployed()))
def test_every_file_and_filter_of_a_role_is_an_input(found: set[str], role: str) -> None:
    for path in (ROOT / "roles" / role).rglob("*"):
        if path.suffix not in (".yml", ".j2") or path.name == "argument_specs.yml":
            continue
        text = re.sub(r"(^|\s)#.*", "", path.read_text())
        # The repository's own files/, by the ways in which roles spell its root.
        for name in re.findall(r"(?:dirname\) ~ '|dirname }}|_root }})/(files/[\w./-]*\w)", text):
            assert any(name == one or name.startswith(f"{one}/") for one in found), name
        for name in re.findall(r"\| lab\.bench\.(\w+)", text):
            assert FILTERS in found
            source = inspect.getsourcefile(inspect.unwrap(filters.FILTERS[name]))
            assert source is not None
            assert Path(source).relative_to(ROOT).as_posix() in found, name
        # The playbook adds the application's folder, which depends on the stack.
        assert "/apps/" not in text or role == "app_server"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        PLAYBOOK: "- name: Deploy\n  roles:\n    - role: one\n  tasks:\n    - block:\n"
        "        - ansible.builtin.include_role:\n            name: two\n",
        "roles/one/tasks/main.yml": "content: \"{{ 'x' | lab.bench.f }}\"\n",
        "roles/two/tasks/main.yml": "- name: I\n  ansible.builtin.include_role:\n    name: three\n",
        "roles/three/templates/a.j2": "{{ lookup('file', root ~ '/files/some.conf') }}\n",
        "roles/three/files/own.sh": "true\n",
        "roles/three/vars/main.yml": "own: \"{{ role_path ~ '/files/own.sh' }}\"  # files/none\n",
        "files/some.conf": "a = 1\n",
        FILTERS: "from loadlab.run import m, o, p\n\ndef f(x):\n    return m.f(x)\n\n"
        'F = {"f": f, "g": o.g}\n',
        "loadlab/run/m.py": "from loadlab.run.n import f\n",
        "loadlab/run/n.py": "f = str\n",
        "loadlab/run/o.py": "g = str\n",
    }
    return stand_ins.tree(tmp_path, files)


def test_inputs_of_each_part_of_a_play(tree: Path) -> None:
    assert fingerprint.of_play(tree, PLAYBOOK, "Deploy", "roles") == [
        PLAYBOOK,
        FILTERS,
        "loadlab/run/m.py",
        "loadlab/run/n.py",
        "roles/one",
    ]
    assert fingerprint.of_play(tree, PLAYBOOK, "Deploy", "tasks") == [
        PLAYBOOK,
        "files/some.conf",
        "roles/three",
        "roles/two",
    ]


@pytest.mark.parametrize(
    "name", [PLAYBOOK, "roles/three/files/own.sh", "files/some.conf", "loadlab/run/n.py", FILTERS]
)
def test_a_change_of_any_input_changes_the_fingerprint(tree: Path, name: str) -> None:
    def of() -> str:
        return fingerprint.fingerprint([], str(tree), sorted(paths(tree)))

    before = of()
    (tree / name).write_text((tree / name).read_text() + "# changed\n")
    assert of() != before


def test_an_input_that_is_absent_is_refused(tree: Path) -> None:
    (tree / "files/some.conf").unlink()
    with pytest.raises(ValueError, match=r"roles/three names files/some\.conf, which"):
        paths(tree)
    shutil.rmtree(tree / "roles/three")
    with pytest.raises(ValueError, match="roles/three is not there"):
        paths(tree)


def test_the_inputs_of_a_calibration_are_known() -> None:
    found = fingerprint.of_roles(ROOT, ["calibrate", "load_tools", "reverse_proxy"])
    assert {"roles/iperf3", "roles/load_run", "loadlab/reasons/validity_reasons.py"} <= set(found)
