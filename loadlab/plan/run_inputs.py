"""Hash the inputs that define a cell, so that a resumed run never mixes versions of them.

A result carries `input_hashes`: SHA-256 values, and the revision of the lab. A change of the lab is
not refused; the report mentions it.
"""

import itertools
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from loadlab.model import InputHashes, Item, Repetition, kinds_of
from loadlab.plan.records import Records, finished
from loadlab.run.errors import PlanError
from loadlab.run.fingerprint import fingerprint
from loadlab.stacks import servers
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack

# Field of InputHashes whose change is reported, not refused.
LAB = "lab"


class Inputs(Struct, kw_only=True, frozen=True):
    """What cells are made of: stacks by id; endpoints, tunings and networks by name."""

    stacks: Mapping[str, Stack]
    endpoints: Contracts
    tunings: Mapping[str, Mapping[str, Any]]
    networks: Mapping[str, Mapping[str, Any]]


class Hasher:
    """Adds the hashes of its inputs to an item. ``lab``: its revision, None where unknown."""

    def __init__(self, root: Path, inputs: Inputs, lab: str | None) -> None:
        self._root, self._inputs, self._lab = root, inputs, lab
        self._application = cache(self._hash_application)
        self._plain = cache(self._hash_plain)

    def hashed(self, item: Item) -> Item:
        """Return the item with its input_hashes."""
        cell = item.cell
        names = [*kinds_of(cell.endpoint), cell.load.background_endpoint]
        endpoints = [self._plain("endpoints", name) for name in names if name is not None]
        hashes = InputHashes(
            application=self._application(item.stack),
            endpoint=fingerprint(endpoints, "", []),
            tuning=self._plain("tunings", cell.tuning),
            network=self._plain("networks", cell.network),
            lab=self._lab,
        )
        return replace(item, input_hashes=hashes)

    def _hash_application(self, stack: str) -> str:
        planned = self._inputs.stacks[stack]
        app, source = planned.app, planned.source
        shared = ["files/python"] if app.language == "python" else []
        folders = [source, f"{servers.FOLDER}/{planned.server}", *shared]
        # Results have no hash that a secret decides.
        secret = app.environment
        without = [self._root / source / secret] if secret else []
        return fingerprint(msgspec.to_builtins(app), str(self._root), folders, without)

    def _hash_plain(self, part: str, name: str) -> str:
        made_of = msgspec.to_builtins(getattr(self._inputs, part)[name])
        return fingerprint(made_of, str(self._root), [])


def check(run_id: str, items: Iterable[Item], records: Records) -> None:
    """Raise PlanError where the run has results of an item whose inputs have changed."""
    for item in items:
        cell = records[item.cell_id].cell if item.cell_id in records else None
        changed = [_changed(repetition, item) for repetition in finished(item.cell_id, records)]
        differs = [*itertools.chain(*changed), *(["cell"] if cell not in (None, item.cell) else [])]
        if differs:
            raise PlanError(
                f"run_id: '{run_id}' has results of {item.cell_id} with another "
                f"{' and another '.join(dict.fromkeys(differs))} than now. "
                "Results of both are not mixed: give another -e run_id=<name>, or leave it out."
            )


def _changed(repetition: Repetition, item: Item) -> list[str]:
    """Return the names of the inputs that have changed since the repetition."""
    if repetition.input_hashes is None or item.input_hashes is None:
        return []
    before, now = asdict(repetition.input_hashes), asdict(item.input_hashes)
    return [part for part, value in before.items() if part != LAB and value != now[part]]


def labs(repetitions: Iterable[Repetition]) -> dict[str, list[int]]:
    """Return revision of the lab -> repetitions it measured; empty where the records name at most
    one."""
    revisions: dict[str, list[int]] = {}
    for repetition in repetitions:
        hashes = repetition.input_hashes
        if hashes is not None and hashes.lab is not None:
            revisions.setdefault(hashes.lab, []).append(repetition.repetition)
    return revisions if len(revisions) > 1 else {}
