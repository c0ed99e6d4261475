"""What decides what a run measures, from its plan and from the lab that measures it."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from loadlab.kinds.study.study_files import filled
from loadlab.model import LabRevision, Manifest, Recipe
from loadlab.model.study import Scalar
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Plan, items
from loadlab.reasons.validity_reasons import THRESHOLDS, Thresholds
from loadlab.results import build_manifest
from loadlab.results.build_manifest import Locked
from loadlab.run import documents, revision
from loadlab.run.run_dir import RunDir


def of_run(run_dir: Path) -> Recipe:
    """Return the recipe of a run that has a manifest. Raises ResultError for a malformed one."""
    begun = plans.read(run_dir)
    manifest = documents.read(RunDir(run_dir).manifest, Manifest)
    locked = Locked(manifest.pins, manifest.locks)
    return _recipe(begun.plan, begun.thresholds, begun.made_with, locked, manifest.lab)


def of_plan(plan: Plan, root: Path, made_with: Mapping[str, Scalar]) -> Recipe:
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
        thresholds=structs.asdict(thresholds),
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
            inputs[f"application {cell.framework}"] = hashes.application
            inputs[f"endpoint {cell.endpoint}"] = hashes.endpoint
            inputs[f"tuning profile {cell.tuning}"] = hashes.tuning
            inputs[f"network profile {cell.network}"] = hashes.network
    return inputs
