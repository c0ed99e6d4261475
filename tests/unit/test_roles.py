from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.lab.bench.plugins.module_utils.plan import LIMITS

ROOT = Path(__file__).parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
APPS = sorted(path for path in (ROOT / "apps").iterdir() if path.is_dir())
PYTHON_APPS = [
    path for path in APPS if yaml.safe_load((path / "app.yml").read_text())["language"] == "python"
]
PROFILES = sorted((ROOT / "files" / "tuning").glob("*.yml"))
ENDPOINTS: dict[str, Any] = yaml.safe_load((ROOT / "files" / "endpoints.yml").read_text())
# Hosts groups of the inventories.
GROUPS = {"servers", "clients"}

each_role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
each_app = pytest.mark.parametrize("app", APPS, ids=lambda path: path.name)


def variables(role: Path, folder: str) -> dict[str, Any]:
    path = role / folder / "main.yml"
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def specs(role: Path) -> dict[str, dict[str, Any]]:
    """Entry point to its options."""
    document = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    points = document["argument_specs"]
    assert "main" in points
    return {name: point.get("options", {}) for name, point in points.items()}


def test_there_are_roles_apps_and_profiles() -> None:
    """Where a folder is moved, the tests below have nothing to look at."""
    assert len(ROLES) > 10
    assert PYTHON_APPS
    assert PROFILES


@each_role
def test_a_role_documents_its_entry_points(role: Path) -> None:
    entries = specs(role)
    for name in entries:
        assert (role / "tasks" / f"{name}.yml").exists(), f"{role.name} has no tasks/{name}.yml"


@each_role
def test_every_default_is_documented_as_it_is(role: Path) -> None:
    defaults = variables(role, "defaults")
    documented: dict[str, list[Any]] = {}
    for point, options in specs(role).items():
        for name, option in options.items():
            assert option.get("description"), f"{role.name} {point}: {name} has no description"
            if "default" in option:
                documented.setdefault(name, []).append(option["default"])
            else:
                assert name not in defaults, f"{role.name} {point}: {name} lacks its default"
    # The main variables have no role's name, and their defaults stand in the specs alone.
    if role.name == "run":
        assert not defaults
        return
    assert set(documented) == set(defaults)
    for name, found in documented.items():
        for default in found:
            assert (type(default), default) == (type(defaults[name]), defaults[name]), name


@each_role
def test_names_tell_whose_variable_it_is(role: Path) -> None:
    assert [n for n in variables(role, "defaults") if not n.startswith(f"{role.name}_")] == []
    own = re.compile(rf"__{role.name}(_[a-z0-9_]+)?")
    assert [n for n in variables(role, "vars") if not own.fullmatch(n)] == []


def test_the_limits_are_the_ones_that_are_documented() -> None:
    options = specs(ROOT / "roles" / "run")["main"]
    found = {}
    for name, option in options.items():
        if option["type"] in ("int", "float"):
            (limits,) = re.findall(r"\b([0-9.]+) to ([0-9]+)\b", option["description"])
            found[name] = tuple(float(limit) for limit in limits)
            assert found[name][0] <= option["default"] <= found[name][1]
    assert found == {name: (low, high) for name, (low, high, _) in LIMITS.items()}


@each_app
def test_an_app_tells_what_it_is(app: Path) -> None:
    manifest = yaml.safe_load((app / "app.yml").read_text())
    needed = {"description", "language", "stacks", "endpoints", "pool_size"}
    assert needed <= set(manifest)
    assert manifest["endpoints"]
    assert set(manifest["endpoints"]) <= set(ENDPOINTS)
    assert manifest["stacks"]
    seen = [(s["server"], s["transport"], s["protocol"]) for s in manifest["stacks"]]
    assert len(set(seen)) == len(seen)
    assert isinstance(manifest["pool_size"], int)
    assert manifest["pool_size"] >= 0
    # Each is a word that the user can choose; a server of nothing has nothing to choose.
    choices = specs(ROOT / "roles" / "run")["main"]
    for stack in manifest["stacks"]:
        for key in ("server", "transport", "protocol"):
            none = manifest["language"] == "none" and stack[key] == "none"
            assert none or stack[key] in choices[key]["choices"]


@pytest.mark.parametrize("app", PYTHON_APPS, ids=lambda path: path.name)
def test_a_python_app_is_locked_and_names_no_index(app: Path) -> None:
    asked = [
        re.match(r"[A-Za-z0-9._-]+", line)
        for line in (app / "requirements.in").read_text().splitlines()
        if line.strip() and not line.startswith(("#", "-"))
    ]
    lock = (app / "requirements.txt").read_text()
    assert "://" not in lock
    assert not re.search(r"^--|index-url|find-links|trusted-host", lock, re.MULTILINE)
    # A requirement begins at the margin; what is indented goes on with it.
    entries = [e for e in re.split(r"^(?=\S)", lock, flags=re.MULTILINE) if e and e[0] != "#"]
    locked = set()
    for entry in entries:
        pin = re.match(r"([A-Za-z0-9._-]+)(\[.*?\])?==[^\s;]+", entry)
        assert pin, entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:80]
        locked.add(pin[1].lower().replace("_", "-"))
    assert asked
    assert {name[0].lower().replace("_", "-") for name in asked if name} <= locked


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_every_tuned_key_says_why_and_where_that_is_from(profile: Path) -> None:
    document = yaml.safe_load(profile.read_text())
    assert document["description"]
    for entry in document["sysctl"]:
        assert set(entry) == {"key", "value", "hosts", "required", "reason", "source"}, entry
        assert isinstance(entry["required"], bool)
        assert set(entry["hosts"]) <= GROUPS
        assert entry["hosts"]
        assert entry["reason"]
        assert re.fullmatch(r"https://\S+", entry["source"])
    for entry in document["postgresql"]:
        assert set(entry) == {"name", "value", "reason"}, entry
        # YAML's off is false, which PostgreSQL's answer never equals.
        assert isinstance(entry["value"], str), entry
    for rows, key in (("sysctl", "key"), ("postgresql", "name")):
        keys = [entry[key] for entry in document[rows]]
        assert len(set(keys)) == len(keys)
