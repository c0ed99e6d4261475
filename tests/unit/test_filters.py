"""The table of filters, and how they take Ansible's values."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect
import pytest
from ansible_collections.lab.bench.plugins.filter import filters
from msgspec import Struct

from loadlab.hosts import host_in_use

ROOT = Path(__file__).parents[2]
USED = re.compile(r"(?:\||\bmap\(\s*')\s*lab\.bench\.(\w+)")


def test_every_filter_is_used_and_every_one_that_is_used_is_there() -> None:
    paths = [
        path
        for folder in ("roles", "playbooks", "inventory", "molecule")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".yml", ".j2")
    ]
    used = {name for path in paths for name in USED.findall(path.read_text())}
    assert used == {*filters.FILTERS, *filters.OF_VARIABLES}


class Size(Struct):
    cores: int
    path: Path | None = None


def taken(sizes: Iterable[Size], factor: float, *more: int) -> list[Size]:
    return [Size(int(size.cores * factor) + sum(more), size.path) for size in sizes]


def test_arguments_and_answers_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    call = filters.adapted(taken)
    assert call([{"cores": "2"}], "1.5", 1, 2) == [{"cores": 6, "path": None}]
    names = filters.adapted(host_in_use.paths)
    assert names({"oha": 1}) == host_in_use.paths(["oha"])
    assert call(sizes=({"cores": 2},), factor=1) == [{"cores": 2, "path": None}]
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\[0\]\.cores`"):
        call([{"cores": "two"}], 1)
    with pytest.raises(TypeError, match="missing a required argument: 'factor'"):
        call([])


def custom(info: Any) -> set[str]:
    """The types below a type that msgspec does not know."""
    if isinstance(info, msgspec.inspect.CustomType):
        return {str(info.cls)}
    if not isinstance(info, msgspec.Struct):
        return set()
    children = [getattr(info, name) for name in info.__struct_fields__]
    every = [
        child for value in children for child in (value if isinstance(value, tuple) else [value])
    ]
    return {name for child in every for name in custom(child)}


def test_each_type_of_an_argument_can_be_converted() -> None:
    for name, function in filters.FILTERS.items():
        hints = {**get_type_hints(function), "return": Any}
        for kind in hints.values():
            known = list[get_args(kind)] if get_origin(kind) is Iterable else kind  # type: ignore[misc]
            assert custom(msgspec.inspect.type_info(known)) <= {str(Path), str(object)}, (
                name,
                kind,
            )
