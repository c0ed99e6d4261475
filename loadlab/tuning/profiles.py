"""Read tuning profiles by name from files/tuning/*.yml."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from loadlab.run.catalog import known, names, read_yaml
from loadlab.run.errors import LabError
from loadlab.stacks.reverse_proxies import reverse_proxies

# Joins a profile's name and the key that is left out of it.
WITHOUT = "-without-"
# Joins a profile's name and each setting of PostgreSQL that is added to it, <setting>-<value>.
_WITH = "-with-postgresql."
_VALUE = re.compile(r"[A-Za-z0-9._-]+")
# The backlog of a profile that sets none is that of the profile that tunes nothing.
BACKLOG = "backlog"
UNTUNED = "stock"


class Computed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that depends on the host: size * times + plus as a whole number, limited to at_least
    and at_most, followed by the unit.

    ``of`` is memory (MB), cores, or connections to the database of all workers.
    """

    of: Literal["memory", "cores", "connections"]
    times: float = 1
    plus: float = 0
    at_least: int | None = None
    at_most: int | None = None
    unit: str = ""


class _Setting(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    value: int | str | Computed
    reason: str
    source: str | None = None


class HostSetting(_Setting, frozen=True, kw_only=True):
    """A setting of the kernel or the machine; ``key`` as in roles/tuning/files/tunables.sh."""

    key: str
    hosts: list[Literal["servers", "clients"]]  #: The inventory groups that it applies to.
    required: bool = False  #: Whether the run ends if it does not take effect.
    #: Whether it applies where the host has more of a capacity (CAPACITIES of
    #: loadlab/tuning/ledger.py).
    lower: bool = False


class ServiceSetting(_Setting, frozen=True, kw_only=True):
    """A setting of a reverse proxy or of PostgreSQL."""

    name: str
    required: bool = True


class Backlog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Length of the accept queues of the reverse proxy and the application server, connections."""

    value: Annotated[int, Meta(ge=1, le=65_535)]
    reason: str
    source: str | None = None


class _Sections(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: str
    sysctl: list[HostSetting] = []
    machine: list[HostSetting] = []
    reverse_proxies: dict[str, list[ServiceSetting]] = {}
    postgresql: list[ServiceSetting] = []


class _File(_Sections, frozen=True, kw_only=True):
    backlog: Backlog | None = None


class TuningProfile(_Sections, frozen=True, kw_only=True):
    """A file of files/tuning/, with a backlog in any case."""

    backlog: Backlog


def tuning_profile(root: Path, name: str) -> TuningProfile:
    """Return files/tuning/<name>.yml.

    <name>-without-<key> is that profile without one key of tuning_keys, as in an ablation;
    with_settings() names one with other settings of PostgreSQL. Raises PlanError where the profile
    or key is unknown, and where the file is malformed.
    """
    name, *added = name.split(_WITH)
    settings = dict(addition.split("-", 1) for addition in added)
    base, without, key = name.partition(WITHOUT)
    file = _file(root, base)
    if without:
        known(f"key of the tuning profile {base}", key, list(_keys(file)))
    backlog = None if key == BACKLOG else file.backlog
    return TuningProfile(
        description=file.description,
        sysctl=[entry for entry in file.sysctl if word(entry.key) != key],
        machine=[entry for entry in file.machine if word(entry.key) != key],
        reverse_proxies={
            proxy: [entry for entry in entries if f"{proxy}.{word(entry.name)}" != key]
            for proxy, entries in file.reverse_proxies.items()
        },
        postgresql=[
            *(
                entry
                for entry in file.postgresql
                if f"postgresql.{word(entry.name)}" != key and entry.name not in settings
            ),
            *(
                ServiceSetting(name=setting, value=value, reason="an option of the variant")
                for setting, value in settings.items()
            ),
        ],
        backlog=backlog or _untuned(root),
    )


def without(name: str, key: str) -> str:
    """Return the name of a tuning profile less one of its keys."""
    return f"{name}{WITHOUT}{key}"


def with_settings(name: str, settings: Mapping[str, str]) -> str:
    """Return the name of a tuning profile with these settings of PostgreSQL, setting -> value.

    Raises ValueError for a value that cannot be part of a name.
    """
    for setting, value in settings.items():
        if not _VALUE.fullmatch(value):
            raise LabError(
                f"postgresql.{setting}: '{value}' has other characters than letters, digits, dots, "
                "dashes and underscores. Set it in a tuning profile."
            )
    return name + "".join(
        f"{_WITH}{setting}-{value}" for setting, value in sorted(settings.items())
    )


def tuning_keys(root: Path, name: str) -> list[str]:
    """Return the keys of a profile's file that can be left out one at a time."""
    return list(_keys(_file(root, name)))


def _untuned(root: Path) -> Backlog:
    backlog = _file(root, UNTUNED).backlog
    assert backlog is not None
    return backlog


def _file(root: Path, name: str) -> _File:
    known("tuning", name, names(root / "files" / "tuning", "*.yml"))
    file = read_yaml(root, f"files/tuning/{name}.yml", _File)
    for proxy in file.reverse_proxies:
        known(f"files/tuning/{name}.yml: reverse_proxies", proxy, list(reverse_proxies(root)))
    return file


def _keys(file: _File) -> Iterator[str]:
    for entry in [*file.sysctl, *file.machine]:
        yield word(entry.key)
    for service, entries in {**file.reverse_proxies, "postgresql": file.postgresql}.items():
        yield from (f"{service}.{word(entry.name)}" for entry in entries)
    if file.backlog:
        yield BACKLOG


def word(key: str) -> str:
    """Return a ledger key as part of a name: without slashes, stars and brackets."""
    return re.sub(r"[*\[\]]", "", key.strip("/").replace("/", "."))
