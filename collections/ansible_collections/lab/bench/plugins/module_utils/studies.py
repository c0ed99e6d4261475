"""Studies and lessons: files that name several cells to measure in one run, and what they claim.

Pure. A file of files/studies/ or files/lessons/ holds

description  one line
options      main variables (roles/run) of all its cells; the user's own win over them
cells        list of {name, options, about, pause, beside}: options are main variables of this cell
             alone, which nothing wins over; about names void reasons that are its very subject;
             pause {after_s, seconds} stops the application during the load; beside is an endpoint
             that one more client asks for all the while
ablate       instead of cells: a tuning profile, measured whole and without each of its keys
claims       see module_utils/claims.py
scales       name -> options of that size; the first is taken unless -e scale= says otherwise
twins        whether its first cell is measured twice (A/A) for the noise floor; default true for
             a study, false for a lesson
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .catalogue import PlanError, known, load_yaml, names
from .tuning import WITHOUT, tuning_keys, tuning_profile

FOLDERS = {"study": "studies", "lesson": "lessons"}


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given at all."""
    return {name: value for name, value in given.items() if value is not None and value != ""}


def find(root: Path, given: Mapping[str, Any], kind: str | None) -> dict[str, Any] | None:
    """The study or lesson asked for; None where none is.

    Returns {kind, name, description, options, cells, claims, twins}. ``kind``: study or lesson
    where one of that kind must be given. Raises PlanError.
    """
    asked = {key: str(value) for key, value in filled(given).items() if key in FOLDERS}
    if kind and kind not in asked:
        there_are = names(root / "files" / FOLDERS[kind], "*.yml")
        raise PlanError(
            f"{kind}: none was given. Give one with -e {kind}=<name>. "
            f"There are: {', '.join(there_are)}."
        )
    if len(asked) > 1:
        raise PlanError(
            f"study: '{asked['study']}' and lesson: '{asked['lesson']}' were both given. Give one."
        )
    if not asked:
        if filled(given).get("scale"):
            raise PlanError(f"scale: '{given['scale']}' is of a study only. Give -e study=<name>.")
        return None
    ((kind, name),) = asked.items()
    folder = root / "files" / FOLDERS[kind]
    known(kind, name, names(folder, "*.yml"))
    file = load_yaml(folder / f"{name}.yml")
    scales = file.get("scales", {})
    scale = str(filled(given).get("scale", next(iter(scales), "")))
    if scale:
        known(f"scale of {kind} {name}", scale, list(scales))
    options = {**file.get("options", {}), **scales.get(scale, {})}
    if "ablate" in file:
        options["tuning"] = _ablation(root, file["ablate"])
    return {
        "kind": kind,
        "name": name,
        "description": file["description"],
        "options": options,
        "cells": [{"options": {}, **cell} for cell in file.get("cells", [{"name": "all"}])],
        "claims": file.get("claims", []),
        "twins": file.get("twins", kind == "study"),
    }


def _ablation(root: Path, name: str) -> list[str]:
    """The profile, and the profile without each of its keys."""
    keys = tuning_keys(tuning_profile(root, name))
    return [name, *(f"{name}{WITHOUT}{key}" for key in keys)]
