"""Studies and lessons: files that name cells to measure in one run, and claims about them.

A file of files/studies/ or files/lessons/ holds:
- description: one line
- options: main variables (roles/run) of all its cells; the user's own override them
- scales: name -> options of that size; the first applies unless -e scale= names another
- cells: list of {name, options, at, about, pause, beside, only, matrix}. options are main variables
  of this cell alone, which nothing overrides; at has more of them by scale; about lists void
  reasons that are the cell's very subject; pause {after_s, seconds} stops the application during
  the load; beside is an endpoint that one more client asks throughout; only lists the scales that
  have the cell; matrix multiplies it: option -> its values, or a name -> {label: options}. Each
  product is named <name>-<value>-<value> (r4-flask-agents)
- rates: name -> {says, rule, and numbers by scale}, for cells whose option rate is that name. The
  number at the scale applies, or else the rule {share, of}: that fraction of the lowest goodput at
  which these cells saturate
- ablate: instead of cells, a tuning profile that is measured whole and without each of its keys
- claims: see loadlab/analysis/claims.py; only as for cells
- twins: whether cells are measured twice (A/A) for the noise floor; default true for a study, false
  for a lesson

What was published elsewhere:
- question: what the study asks
- source: {title, author, date, url}, commit and more where known
- setup: the published set-up: server, client, link (in words), versions {package: version}
- figures: list of {title, where, reference, cells {name: {metric: figure}}}, the published figures
  of each cell. A figure is a number in the metric's unit, or a number with a unit (16.1 ms).
  <name>@<connections> is one level of a sweep. reference is the cell that others are compared with.
  not_repeated says why none of these is measured here; then the names are free text
- mistakes: list of {what, printed, corrected}: errors of the source and how to read them; cell and
  metric: the cell that shows it here
- differs: sentences on differences that no document of the run records
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core.catalog import known, load_yaml, names
from loadlab.core.errors import PlanError
from loadlab.tuning.profiles import WITHOUT, tuning_keys

FOLDERS = {"study": "studies", "lesson": "lessons"}
# The scale at which everything is as published.
PUBLISHED = "published"
# Units of published figures, in seconds, bytes or ones.
_UNITS = {
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "B": 1.0, "KiB": 1024.0, "MiB": 1048576.0,
    "%": 0.01,
}  # fmt: skip


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in given.items() if value is not None and value != ""}


def find(root: Path, given: Mapping[str, Any], kind: str | None) -> dict[str, Any] | None:
    """Return the study or lesson asked for; None where none is.

    ``kind``: "study" or "lesson" where one of that kind must be given. Returns {kind, name, scale,
    description, options, cells, claims, twins, ablate, published}: cells is [{name, options, about,
    pause, beside}] with matrix, at and only resolved. published is copied into the documents:
    {question, source, setup, settings, rates, figures, mistakes, differs}. Raises PlanError.
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
    rates = {name: _rate(rate, scale) for name, rate in file.get("rates", {}).items()}
    cells = [
        cell
        for entry in file.get("cells", [{"name": "all"}])
        if scale in entry.get("only", [scale])
        for cell in _multiplied(entry, scale)
    ]
    for cell in cells:
        rate = cell["options"].get("rate")
        if isinstance(rate, str) and rate in rates:
            cell["options"]["rate"] = rates[rate]
    return {
        "kind": kind,
        "name": name,
        "scale": scale or None,
        "description": file["description"],
        "options": options,
        "cells": cells,
        "claims": [one for one in file.get("claims", []) if scale in one.get("only", [scale])],
        "twins": file.get("twins", kind == "study"),
        "ablate": file.get("ablate"),
        "published": {
            **{key: file.get(key) for key in ("question", "source", "setup")},
            "settings": _settings(scales, {**options, **filled(given)}, scale),
            "rates": [
                {"name": name, "says": rate["says"], "published": rate.get(PUBLISHED)}
                | {"here": rates[name]}
                for name, rate in file.get("rates", {}).items()
            ],
            "figures": [_figures(group) for group in file.get("figures", [])],
            **{key: file.get(key, []) for key in ("mistakes", "differs")},
        },
    }


def _rate(rate: Mapping[str, Any], scale: str) -> Any:
    return rate.get(scale, rate.get("rule"))


def _multiplied(entry: Mapping[str, Any], scale: str) -> Iterator[dict[str, Any]]:
    """Yield the cells of an entry of `cells`: one, or the product of its matrix."""
    rest = {key: value for key, value in entry.items() if key not in ("matrix", "only", "at")}
    axes = [list(_axis(*axis)) for axis in entry.get("matrix", {}).items()]
    for choice in itertools.product(*axes):
        options = dict(entry.get("options", {}))
        for _, more in choice:
            options |= more
        options |= entry.get("at", {}).get(scale, {})
        name = "-".join([entry["name"], *(label for label, _ in choice)])
        yield {**rest, "name": name, "options": options}


def _axis(option: str, values: Sequence[Any] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (label, options) for each value of one axis of a matrix."""
    if isinstance(values, Mapping):
        yield from ((str(label), options) for label, options in values.items())
    else:
        yield from ((str(value), {option: value}) for value in values)


def _settings(
    scales: Mapping[str, Any], words: Mapping[str, Any], scale: str
) -> list[dict[str, Any]]:
    """Return [{name, published, here}] of each option that differs from the scale published."""
    if scale == PUBLISHED:
        return []
    return [
        {"name": name, "published": value, "here": words.get(name)}
        for name, value in scales.get(PUBLISHED, {}).items()
        if words.get(name) != value
    ]


def _figures(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group of `figures` with each number in its metric's own unit."""
    return {
        "title": group["title"],
        "where": group["where"],
        "reference": group.get("reference"),
        "not_repeated": group.get("not_repeated"),
        "cells": {
            name: {metric: in_unit(metric, figure) for metric, figure in figures.items()}
            for name, figures in group["cells"].items()
        },
    }


def in_unit(metric: str, figure: float | str) -> float:
    """Return a published figure in the metric's unit: µs for latencies, else s, bytes or a number.

    Raises PlanError where it is not a number with a known unit.
    """
    number, _, unit = str(figure).partition(" ")
    try:
        size = _UNITS[unit] if unit else 1.0
        value = float(number)
    except (KeyError, ValueError):
        raise PlanError(
            f"{metric}: '{figure}' is not a number with one of the units {', '.join(_UNITS)}"
        ) from None
    # Rounded, as 65.98 ms times 1000 is not exactly 65980 in floating point.
    return round(value * size * (1e6 if unit and "_us" in metric else 1), 9)


def _ablation(root: Path, name: str) -> list[str]:
    """Return the profile's name, and the names of the profile without each of its keys."""
    keys = tuning_keys(root, name)
    return [name, *(f"{name}{WITHOUT}{key}" for key in keys)]
