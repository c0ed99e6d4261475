"""In what two runs differ, besides their figures."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from loadlab.hosts.identity import MEMORY_DIFFERS
from loadlab.model import (
    Deviation,
    LedgerRow,
    ManifestHost,
    Part,
    Recipe,
    ReproductionPart,
    TuningLedger,
)
from loadlab.model.base import Json

# Options that are of one run alone or have no effect of their own.
_OWN = ("run_id", "like", "recalibrate", "untune", "scale")
# Fields of a host that are not compared as its hardware.
_NO_HARDWARE = ("role", "kernel", "os", "packages", "hardware")
# Properties of a host and of a network card that change without any meaning.
_NO_HOST, _NO_NIC = ("conntrack_entries",), ("interrupts",)

# (what a thing is of, its name) -> its value
_Things = dict[tuple[str | None, str], Json]


def planned(original: Recipe, here: Recipe) -> list[ReproductionPart]:
    """Return the parts that are known before anything is changed."""
    return [
        _options(original, here),
        # Of an input or lock file that only one run has, the options and cells tell.
        _part("input", *_common(original.inputs, here.inputs)),
        _part("pin", *_pins(original.pins, here.pins)),
        _part("lock file", *_common(original.locks, here.locks)),
        _part(
            "threshold",
            _things(original.thresholds),
            _things(here.thresholds),
        ),
        _part(
            "lab",
            _things(msgspec.structs.asdict(original.lab)),
            _things(msgspec.structs.asdict(here.lab)),
        ),
    ]


def measured(
    hosts: tuple[Mapping[str, ManifestHost], Mapping[str, ManifestHost]],
    controllers: tuple[Mapping[str, Json], Mapping[str, Json]],
    ledgers: tuple[Sequence[TuningLedger], Sequence[TuningLedger]],
) -> list[ReproductionPart]:
    """Return the parts that are known after the load; each pair is (original, here).

    Hosts correspond by their role and their place among the hosts of that role; a deviation has
    the name of the host here.
    """
    names = _corresponding(*hosts)
    before = {names[name]: host for name, host in hosts[0].items()}
    return [
        _part("controller", _things(controllers[0]), _things(controllers[1])),
        _hosts("hardware", before, hosts[1], _hardware),
        _hosts("kernel", before, hosts[1], lambda host: {"kernel": host.kernel, "os": host.os}),
        _hosts("package", before, hosts[1], lambda host: dict(host.packages)),
        _part("tuning", _tuned(ledgers[0], names), _tuned(ledgers[1], {})),
    ]


def _options(original: Recipe, here: Recipe) -> ReproductionPart:
    before, now = (_of_recipe(recipe) for recipe in (original, here))
    part = _part("option", before, now)
    deviations = [
        msgspec.structs.replace(deviation, requested=_requested(deviation.name, original, here))
        for deviation in part.deviations
    ]
    return msgspec.structs.replace(part, deviations=deviations)


def _requested(name: str, original: Recipe, here: Recipe) -> bool:
    """Return whether an option differs because the user gave it."""
    if name in here.made_with:
        return name in original.made_with
    return here.given_options.get(name) != original.given_options.get(name)


def _of_recipe(recipe: Recipe) -> _Things:
    options: dict[str, Json] = msgspec.to_builtins(msgspec.structs.asdict(recipe.options))
    chosen = {name: value for name, value in options.items() if name not in _OWN}
    return _things({**chosen, "scale": recipe.scale, **recipe.made_with})


def _common(original: Mapping[str, str], here: Mapping[str, str]) -> tuple[_Things, _Things]:
    names = original.keys() & here.keys()
    return _things({name: original[name] for name in names}), _things(
        {name: here[name] for name in names}
    )


def _pins(original: Mapping[str, str], here: Mapping[str, str]) -> tuple[_Things, _Things]:
    """Return the pins of the lock files that both runs used."""
    locks = {name.partition("/")[0] for name in original} & {
        name.partition("/")[0] for name in here
    }
    before, now = (
        {name: value for name, value in pins.items() if name.partition("/")[0] in locks}
        for pins in (original, here)
    )
    return _things(before), _things(now)


def _things(named: Mapping[str, Json]) -> _Things:
    return {(None, name): value for name, value in named.items()}


def _part(part: Part, original: _Things, here: _Things) -> ReproductionPart:
    """Return what is the same and what differs; a thing that only one has differs."""
    same, deviations = 0, []
    for of, name in sorted({*original, *here}, key=lambda thing: (thing[0] or "", thing[1])):
        before, now = original.get((of, name)), here.get((of, name))
        if _alike(name, before, now):
            same += 1
        else:
            deviations.append(Deviation(of=of, name=name, original=before, here=now))
    return ReproductionPart(part=part, same=same, deviations=deviations)


def _alike(name: str, before: Json, now: Json) -> bool:
    if name == "memory_bytes" and isinstance(before, int) and isinstance(now, int):
        return math.isclose(before, now, rel_tol=MEMORY_DIFFERS)
    return bool(before == now)


def _corresponding(
    original: Mapping[str, ManifestHost], here: Mapping[str, ManifestHost]
) -> dict[str, str]:
    """Return the name here of each host of the original; its own where there is none."""
    names = {name: name for name in original}
    for role in ("server", "client"):
        before, now = (
            [name for name, host in hosts.items() if host.role == role]
            for hosts in (original, here)
        )
        names.update(zip(before, now, strict=False))
    return names


def _hosts(
    part: Part,
    original: Mapping[str, ManifestHost],
    here: Mapping[str, ManifestHost],
    properties: Callable[[ManifestHost], Mapping[str, Json]],
) -> ReproductionPart:
    before: _Things = {}
    now: _Things = {}
    for things, hosts in ((before, original), (now, here)):
        for host, machine in hosts.items():
            things.update({(host, name): value for name, value in properties(machine).items()})
    return _part(part, before, now)


def _hardware(host: ManifestHost) -> dict[str, Json]:
    fields: dict[str, Json] = msgspec.to_builtins(host)
    more: dict[str, Json] = msgspec.to_builtins(host.hardware)
    card: dict[str, Json] = msgspec.to_builtins(host.hardware.nic) or {}
    more.pop("nic", None)
    return {
        **{name: value for name, value in fields.items() if name not in _NO_HARDWARE},
        **{name: value for name, value in more.items() if name not in _NO_HOST},
        **{f"nic {name}": value for name, value in card.items() if name not in _NO_NIC},
    }


def _tuned(ledgers: Iterable[TuningLedger], names: Mapping[str, str]) -> _Things:
    """Return the value that each tuned key has after the tuning, by profile, host and key."""
    return {
        (names.get(host, host), f"{ledger.profile}: {row.key}"): _after(row)
        for ledger in ledgers
        for host, rows in ledger.hosts.items()
        for row in rows
    }


def _after(row: LedgerRow) -> str | None:
    return row.after if row.after is not None else row.state
