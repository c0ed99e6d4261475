"""Where the controller keeps what it built or downloaded."""

import re
from pathlib import Path

import pytest

from loadlab.hosts import cache

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("user", "environment", "folder"),
    [
        (0, {"XDG_CACHE_HOME": "/x"}, "/var/cache/loadlab"),
        (1000, {"XDG_CACHE_HOME": "/x"}, "/x/loadlab"),
        (1000, {"XDG_CACHE_HOME": "x"}, "/home/me/.cache/loadlab"),
        (1000, {"XDG_CACHE_HOME": ""}, "/home/me/.cache/loadlab"),
        (1000, {}, "/home/me/.cache/loadlab"),
    ],
)
def test_only_root_writes_to_the_machines_cache(
    user: int, environment: dict[str, str], folder: str
) -> None:
    assert cache.folder(user, environment, Path("/home/me")) == Path(folder)


def test_every_cache_of_a_role_is_in_that_folder() -> None:
    """Local hosts, which only root makes, name their own."""
    caches = {
        line
        for path in ROOT.glob("roles/*/defaults/main.yml")
        for line in path.read_text().splitlines()
        if re.match(r"\w+_cache: ", line) and path.parts[-3] != "local_hosts"
    }
    assert len(caches) > 1
    place = "{{ local_hosts_cache | default(lookup('lab.bench.cache')) }}"
    assert [line for line in caches if place not in line] == []
