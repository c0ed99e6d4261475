"""The options of a run that repeats another one, its original."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from loadlab.kinds import all_kinds
from loadlab.kinds.study.study_files import FOLDERS, filled
from loadlab.model import GivenOptions, Recipe, Source
from loadlab.plan import check_options
from loadlab.plan.check_options import Specs
from loadlab.plan.load_options import load_files
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plural
from loadlab.run.run_dir import RunDir

# What belongs to one run alone; the options of its load are given beside it.
_OWN = ("run_id", "like", "load")


def refuse_stage(user: Iterable[str], begin: bool) -> None:
    """Raise PlanError for `like` in a stage that begins no run."""
    if "like" in user and not begin:
        raise PlanError(
            "like: it begins a new run, and this stage goes on with one. Give it to lab.yml."
        )


def options(
    source: Source, recipe: Recipe, specs: Specs, call: GivenOptions, user: Iterable[str]
) -> GivenOptions:
    """Return the options of the original, with those that the user gave with -e in their place.

    A default of this lab that differs from the original's is replaced too; of a study its file
    decides, and of variants the lab. The inventory's own options are left out, as the original did
    not have them. ``call``: all options of this call; ``user``: names of those given with -e.
    """
    original: GivenOptions = {**_defaults(recipe, specs), **filled(recipe.given_options)}
    if recipe.scale is not None:
        original["scale"] = recipe.scale
    own = {name: value for name, value in call.items() if name in {*user, *_OWN}}
    left_out = {*_OWN, *load_files.replaced_by(filled(own))}
    original = {
        name: value for name, value in original.items() if name in specs and name not in left_out
    }
    _refuse_another_study(source, original, filled(call))
    return {**dict.fromkeys(specs), **original, **filled(own)}


def _defaults(recipe: Recipe, specs: Specs) -> GivenOptions:
    """Return the options that the original took from defaults which are others here."""
    if any(
        name in filled(recipe.given_options) for kind in all_kinds.KINDS for name in kind.options
    ):
        return {}
    before: GivenOptions = msgspec.structs.asdict(recipe.options)
    now: GivenOptions = msgspec.structs.asdict(check_options.options(specs, {}))
    return filled({name: before[name] for name in specs if before[name] != now[name]})


def _refuse_another_study(source: Source, original: GivenOptions, call: GivenOptions) -> None:
    for name in FOLDERS:
        if name in call and call[name] != original.get(name):
            ran = next(
                (f"the {own} {original[own]}" for own in FOLDERS if own in original), "no study"
            )
            raise PlanError(
                f"like: the run {source.run_id} ran {ran}, and {name}: '{call[name]}' was given. "
                "Give one of both."
            )


def refuse(source: Source, recipe: Recipe, results: Path, run_id: str | None, clients: int) -> None:
    """Raise PlanError where the original cannot be repeated as a new run on these hosts.

    ``run_id``: of the new run, None where it gets one. ``clients``: of each server.
    """
    if run_id is not None and RunDir(results / run_id).plan.exists():
        raise PlanError(
            f"like: it begins a new run, and run_id: '{run_id}' has begun. Leave like out to go on "
            "with that run, or give another -e run_id=."
        )
    if run_id == source.run_id:
        raise PlanError(
            f"run_id: '{run_id}' is the run to repeat itself. Give another, or leave it out."
        )
    before = recipe.options.clients
    if before != clients:
        raise PlanError(
            f"like: the run {source.run_id} offered its load with {plural(before, 'client')} to a "
            f"server, and the inventory has {clients}. Give an inventory with as many with -i."
        )
