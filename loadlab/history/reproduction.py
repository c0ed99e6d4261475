"""Compare a run with its original: what decides what each measures, and in what they differ besides
their figures; and write reproduction.json.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import asdict, replace

from loadlab.history import run_comparison
from loadlab.hosts.identity import MEMORY_DIFFERS
from loadlab.kinds.study.study_files import filled
from loadlab.model import (
    CellSummary,
    Deviation,
    LabRevision,
    Manifest,
    ManifestHost,
    Original,
    Part,
    Recipe,
    Reproduction,
    ReproductionPart,
    Summary,
    TuningLedger,
)
from loadlab.model.base import Json
from loadlab.model.study import Scalar
from loadlab.plan import plan_document as plans
from loadlab.plan import records
from loadlab.plan.plan_document import Plan, items
from loadlab.reasons.validity_reasons import THRESHOLDS, Thresholds
from loadlab.results import build_manifest
from loadlab.results.build_manifest import Locked
from loadlab.run import documents, revision
from loadlab.run.run_dir import RunDir

# Options that are of one run alone or have no effect of their own.
_OWN = ("run_id", "like", "recalibrate", "untune", "scale")
# Fields of a host that are not compared as its hardware.
_NO_HARDWARE = ("role", "kernel", "os", "packages", "hardware")
# Properties of a host and of a network card that change without any meaning.
_NO_HOST, _NO_NIC = ("conntrack_entries",), ("interrupts",)

# (what a thing is of, its name) -> its value
_Things = dict[tuple[str | None, str], Json]


@dataclass(frozen=True)
class Basis:
    """What a run was measured with, besides its figures; an Original has the same fields."""

    recipe: Recipe
    hosts: dict[str, ManifestHost]
    controller: dict[str, str]
    ledgers: list[TuningLedger]


def basis(run_dir: Path) -> Basis:
    """Return what a run was measured with. Raises ResultError for a malformed document."""
    begun, manifest = plans.read(run_dir), documents.read(RunDir(run_dir).manifest, Manifest)
    locked = Locked(manifest.pins, manifest.locks)
    recipe = _recipe(begun.plan, begun.thresholds, begun.made_with, locked, manifest.lab)
    return Basis(recipe, manifest.hosts, manifest.controller, records.ledgers(run_dir))


def recipe_of_plan(plan: Plan, root: Path, made_with: Mapping[str, Scalar]) -> Recipe:
    """Return the recipe of a run that is about to begin with the lab in ``root``.

    ``made_with``: the variables of the role that makes its hosts.
    """
    planned = items(plan.experiments)
    locked = build_manifest.locked(
        root,
        build_manifest.sources(item.cell for item in planned),
        {item.cell.load.generator for item in planned},
        plan.py_spy,
    )
    return _recipe(plan, THRESHOLDS, made_with, locked, revision.of(root))


def _recipe(
    plan: Plan,
    thresholds: Thresholds,
    made_with: Mapping[str, Scalar],
    locked: Locked,
    lab: LabRevision,
) -> Recipe:
    return Recipe(
        given_options=filled(plan.given_options),
        options=plan.options,
        scale=plan.study.scale if plan.study else None,
        # -e gives text, and a default of a role may be a number.
        made_with={name: str(value) for name, value in made_with.items()},
        inputs=_inputs(plan),
        thresholds=asdict(thresholds),
        lab=lab,
        pins=locked.pins,
        locks=locked.locks,
    )


def _inputs(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of each input of the plan's cells, by its kind and name."""
    inputs: dict[str, str] = {}
    for item in items(plan.experiments):
        cell, hashes = item.cell, item.input_hashes
        if hashes is not None:
            # Its hash is also that of its server.
            inputs[f"application {cell.framework} on {cell.server}"] = hashes.application
            inputs[f"endpoint {cell.endpoint}"] = hashes.endpoint
            inputs[f"tuning profile {cell.tuning}"] = hashes.tuning
            inputs[f"network profile {cell.network}"] = hashes.network
    return inputs


def write(run_dir: Path) -> Reproduction | None:
    """Write reproduction.json of a run that repeats another, from its documents; return it.

    None where it repeats none. Raises ResultError naming a malformed document.
    """
    run = RunDir(run_dir)
    if not run.original.exists():
        return None
    original = documents.read(run.original, Original)
    summary = documents.read(run.summary, Summary)
    sides = {"base": [original.source.run_id], "head": [summary.run_id]}
    compared = run_comparison.between(
        sides, {original.source.run_id: original.summary, summary.run_id: summary}
    )
    before, now = _measured(original.summary), _measured(summary)
    document = Reproduction(
        run_id=summary.run_id,
        original=original.source,
        parts=deviations(original, basis(run_dir)),
        comparisons=compared.comparisons,
        noise_floor=compared.noise_floor,
        only_original=[cell_id for cell_id in before if cell_id not in now],
        only_here=[cell_id for cell_id in now if cell_id not in before],
    )
    documents.write(run.reproduction, documents.encode(document))
    return document


def _measured(summary: Summary) -> dict[str, CellSummary]:
    return {cell.cell_id: cell for cell in summary.cells if cell.purpose == "measure"}


def deviations(original: Basis | Original, here: Basis) -> list[ReproductionPart]:
    """Return the parts of two runs, each with what differs in it.

    Hosts correspond by their role and their place among the hosts of that role; a deviation has
    the name of the host here.
    """
    names = _corresponding(original.hosts, here.hosts)
    hosts = {names[name]: host for name, host in original.hosts.items()}, here.hosts
    return [
        *planned(original.recipe, here.recipe),
        _part("controller", _things(original.controller), _things(here.controller)),
        _of_hosts("hardware", hosts, _hardware),
        _of_hosts("kernel", hosts, lambda host: {"kernel": host.kernel, "os": host.os}),
        _of_hosts("package", hosts, lambda host: {**host.packages}),
        _part("tuning", _tuned(original.ledgers, names), _tuned(here.ledgers, {})),
    ]


def planned(original: Recipe, here: Recipe) -> list[ReproductionPart]:
    """Return the parts that are known before anything is changed."""
    return [
        _options(original, here),
        # Of an input or lock file that only one run has, the options and cells tell.
        _part("input", *_of_both(original.inputs, here.inputs)),
        # Of lock files that both runs used.
        _part("pin", *_of_both(original.pins, here.pins, lambda name: name.rpartition("/")[0])),
        _part("lock file", *_of_both(original.locks, here.locks)),
        _part("threshold", _things(original.thresholds), _things(here.thresholds)),
        _part("lab", _things(asdict(original.lab)), _things(asdict(here.lab))),
    ]


def _options(original: Recipe, here: Recipe) -> ReproductionPart:
    part = _part("option", *map(_chosen, (original, here)))
    marked = [
        replace(deviation, requested=_requested(deviation.name, original, here))
        for deviation in part.deviations
    ]
    return replace(part, deviations=marked)


def _requested(name: str, original: Recipe, here: Recipe) -> bool:
    """Return whether an option differs because the user gave it."""
    if name in here.made_with:
        return name in original.made_with
    return here.given_options.get(name) != original.given_options.get(name)


def _chosen(recipe: Recipe) -> _Things:
    options: dict[str, Json] = to_builtins(asdict(recipe.options))
    chosen = {name: value for name, value in options.items() if name not in _OWN}
    return _things({**chosen, "scale": recipe.scale, **recipe.made_with})


def _of_both(
    original: Mapping[str, str],
    here: Mapping[str, str],
    kind: Callable[[str], str] = lambda name: name,
) -> list[_Things]:
    """Return the things of each side whose kind, by their name, both have."""
    kinds = set(map(kind, original)) & set(map(kind, here))
    return [
        _things({name: value for name, value in side.items() if kind(name) in kinds})
        for side in (original, here)
    ]


def _things(named: Mapping[str, Json]) -> _Things:
    return {(None, name): value for name, value in named.items()}


def _part(part: Part, original: _Things, here: _Things) -> ReproductionPart:
    """Return what is the same and what differs; a thing that only one has differs."""
    same, differing = 0, []
    for of, name in sorted({*original, *here}, key=lambda thing: (thing[0] or "", thing[1])):
        before, now = original.get((of, name)), here.get((of, name))
        if _alike(name, before, now):
            same += 1
        else:
            differing.append(Deviation(of=of, name=name, original=before, here=now))
    return ReproductionPart(part=part, same=same, deviations=differing)


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


def _of_hosts(
    part: Part,
    sides: Iterable[Mapping[str, ManifestHost]],
    properties: Callable[[ManifestHost], Mapping[str, Json]],
) -> ReproductionPart:
    things: list[_Things] = [
        {
            (host, name): value
            for host, machine in hosts.items()
            for name, value in properties(machine).items()
        }
        for hosts in sides
    ]
    return _part(part, *things)


def _hardware(host: ManifestHost) -> dict[str, Json]:
    fields: dict[str, Json] = to_builtins(host)
    more: dict[str, Json] = to_builtins(host.hardware)
    card: dict[str, Json] = to_builtins(host.hardware.nic) or {}
    more.pop("nic", None)
    return {
        **{name: value for name, value in fields.items() if name not in _NO_HARDWARE},
        **{name: value for name, value in more.items() if name not in _NO_HOST},
        **{f"nic {name}": value for name, value in card.items() if name not in _NO_NIC},
    }


def _tuned(ledgers: Iterable[TuningLedger], names: Mapping[str, str]) -> _Things:
    """Return the value that each tuned key has after the tuning, by profile, host and key."""
    return {
        (names.get(host, host), f"{ledger.profile}: {row.key}"): (
            row.after if row.after is not None else row.state
        )
        for ledger in ledgers
        for host, rows in ledger.hosts.items()
        for row in rows
    }
