"""The table of filters, and how they take Ansible's values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.filter import filters
from msgspec import Struct

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


def taken(sizes: Sequence[Size], factor: float, *more: int) -> list[Size]:
    assert isinstance(sizes[0], Size)
    return [Size(int(size.cores * factor) + sum(more), size.path) for size in sizes]


def test_arguments_and_answers_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    call = filters.adapted(taken)
    assert call([{"cores": "2"}], "1.5", 1, 2) == [{"cores": 6, "path": None}]
    assert call(sizes=({"cores": 2},), factor=1) == [{"cores": 2, "path": None}]
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\[0\]\.cores`"):
        call([{"cores": "two"}], 1)
    with pytest.raises(TypeError, match="missing a required argument: 'factor'"):
        call([])
