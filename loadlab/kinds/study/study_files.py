"""Studies and lessons: files that name cells to measure in one run, and claims about them.

A file of files/studies/ or files/lessons/ holds:
- description: one line
- options: main variables (roles/run) of all its cells; the user's own override them
- scales: name -> options of that size; the first applies unless -e scale= names another
- cells: see FileCell. Each product of a matrix is named <name>-<value>-<value> (r4-flask-agents)
- rates: name -> FileRate, for cells whose option rate is that name
- ablate: instead of cells, a tuning profile that is measured whole and without each of its keys
- claims: {statement, published, scales}, and metric with cell, ratio or order and their bounds
  (ClaimStatement), or `all` with a list of these
- lesson: of a lesson alone, see model.Lesson: questions, fits, explanation, exercise. Its picture
  is the SVG file of the same name
- aa_controls: whether cells are measured twice (A/A) for the noise floor; default true for a study,
  false for a lesson

What was published elsewhere:
- question: what the study asks
- source: {title, author, date, url}, commit and more where known
- setup: the published set-up: server, client, link (in words), versions {package: version}
- figures: list of FileFigures
- errata: errors of the source and how to read them (StudyErratum)
- differs: sentences on differences that no document of the run records
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import asdict

from loadlab.kinds.lesson import definition
from loadlab.model import (
    GivenOptions,
    OptionValue,
    PublishedFigures,
    SaturationRate,
    Study,
    StudyCell,
    StudyClaim,
    StudyPublication,
    StudyRate,
    StudySetting,
)
from loadlab.model.study import FileCell, FileFigures, FileRate, Scalar, StudyFile, StudyLoad
from loadlab.run.catalog import known, load_yaml, names
from loadlab.run.errors import PlanError
from loadlab.tuning.profiles import tuning_keys, without

FOLDERS = {"study": "studies", "lesson": "lessons"}
# The scale at which everything is as published.
PUBLISHED = "published"
# Units of published figures, in seconds, bytes or ones.
_UNITS = {
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "B": 1.0, "KiB": 1024.0, "MiB": 1048576.0,
    "%": 0.01,
}  # fmt: skip


def filled(options: Mapping[str, OptionValue]) -> GivenOptions:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None and value != ""}


def shared(record: Struct, base: type[Struct]) -> dict[str, Any]:
    """Return the fields that a record has of a base."""
    return {name: getattr(record, name) for name in base.__struct_fields__}


def read(path: Path) -> StudyFile:
    """Return a study's or lesson's file.

    Raises PlanError with the file, the place and the reason.
    """
    try:
        content = _with_claims(load_yaml(path), "claims")
        lesson = content.get("lesson") if isinstance(content, dict) else None
        if isinstance(lesson, dict):
            exercise = _with_claims(_with_claims(lesson.get("exercise"), "cured"), "price")
            content = {**content, "lesson": {**lesson, "exercise": exercise}}
        study = msgspec.convert(content, StudyFile)
        _check_lesson(study, path)
        for group in study.figures:
            _figures(group)
    except (yaml.YAMLError, ValueError) as problem:
        file = f"files/{path.parent.name}/{path.name}"
        raise PlanError(f"{file}: {problem}") from None
    return study


def _check_lesson(file: StudyFile, path: Path) -> None:
    """Raise ValueError where a lesson lacks a part, or a part is invalid."""
    is_lesson = path.parent.name == FOLDERS["lesson"]
    if is_lesson != (file.lesson is not None):
        raise ValueError("a lesson has the key `lesson`, and a study has none")
    if file.lesson is None:
        return
    if file.question is None:
        raise ValueError("a lesson needs a question")
    if not definition.picture(path).exists():
        raise ValueError(f"its picture {definition.picture(path).name} is not there")
    definition.check(file.lesson, [cell.name for cell in file.cells])


def _with_claims(content: Any, key: str) -> Any:
    """Return a mapping with its list of claims in the form with `all`; anything else unchanged."""
    if isinstance(content, dict) and isinstance(content.get(key), list):
        return {**content, key: [_claim(claim) for claim in content[key]]}
    return content


def _claim(claim: object) -> object:
    """Return a claim in the form with `all`, and what was published of it with all keys."""
    if not isinstance(claim, dict):
        return claim
    own = {key: claim[key] for key in ("statement", "scales") if key in claim}
    if isinstance(claim.get("published"), dict):
        own["published"] = {"value": None, "statement": "", **claim["published"]}
    rest = {key: value for key, value in claim.items() if key not in (*own, "published")}
    return {**own, **(rest if "all" in rest else {"all": [rest]})}


def find(root: Path, options: GivenOptions, kind: str | None) -> Study:
    """Return the study or lesson that was asked for, at its scale.

    ``kind``: study or lesson where one of that kind must be given. Raises PlanError.
    """
    options = filled(options)
    kind, name = _choose(root, options, kind)
    folder = root / "files" / FOLDERS[kind]
    known(kind, name, names(folder, "*.yml"))
    file = read(folder / f"{name}.yml")
    scale = str(options.get("scale", next(iter(file.scales), "")))
    if scale and not file.scales:
        raise PlanError(f"scale: the {kind} {name} has one size. Leave scale out.")
    if scale:
        known(f"scale of {kind} {name}", scale, list(file.scales))
    own = {**file.options, **file.scales.get(scale, {})}
    if file.ablate is not None:
        keys = tuning_keys(root, file.ablate)
        own["tuning"] = [file.ablate, *(without(file.ablate, key) for key in keys)]
    return Study(
        kind=kind,
        name=name,
        scale=scale or None,
        description=file.description,
        options=own,
        cells=[cell for entry in file.cells for cell in _cells(entry, file.rates, scale)],
        claims=[
            StudyClaim(statement=claim.statement, all=claim.all, published=claim.published)
            for claim in file.claims
            if scale in (claim.scales or [scale])
        ],
        aa_controls=kind == "study" if file.aa_controls is None else file.aa_controls,
        ablate=file.ablate,
        lesson=file.lesson,
        publication=_publication(file, {**own, **options}, scale),
    )


def _choose(root: Path, options: GivenOptions, kind: str | None) -> tuple[str, str]:
    """Return whether a study or a lesson was given, and its name."""
    if kind and kind not in options:
        files = names(root / "files" / FOLDERS[kind], "*.yml")
        raise PlanError(
            f"{kind}: none was given. Give one with -e {kind}=<name>. "
            f"There are: {', '.join(files)}."
        )
    study, lesson = options.get("study"), options.get("lesson")
    if study is not None and lesson is not None:
        raise PlanError(f"study: '{study}' and lesson: '{lesson}' were both given. Give one.")
    return ("lesson", str(lesson)) if study is None else ("study", str(study))


def without_file(
    name: str, description: str, options: GivenOptions, cells: list[StudyCell]
) -> Study:
    """Return a study that has no file: its cells, without claims or A/A controls of its own."""
    return Study(
        kind="study",
        name=name,
        scale=None,
        description=description,
        options=options,
        cells=cells,
        claims=[],
        aa_controls=False,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
    )


def _here(rate: FileRate, scale: str) -> float | SaturationRate | None:
    """Return what stands for a published rate at a scale."""
    return rate.published if scale == PUBLISHED and rate.published is not None else rate.rule


def _cells(entry: FileCell, rates: Mapping[str, FileRate], scale: str) -> Iterator[StudyCell]:
    """Yield the cells that an entry of `cells` has at a scale."""
    if scale not in (entry.scales or [scale]):
        return
    axes = [list(_axis(option, values)) for option, values in entry.matrix.items()]
    for choice in itertools.product(*axes):
        options = dict(entry.options)
        for _, more in choice:
            options |= more
        options |= entry.per_scale.get(scale, {})
        rate = options.get("rate")
        if isinstance(rate, str) and rate in rates:
            here = _here(rates[rate], scale)
            options["rate"] = (
                {"fraction": here.fraction, "of": [*here.of]}
                if isinstance(here, SaturationRate)
                else here
            )
        yield StudyCell(
            name="-".join([entry.name, *(label for label, _ in choice)]),
            options=options,
            **shared(entry, StudyLoad),
        )


def _axis(
    option: str, values: list[Scalar] | dict[str, GivenOptions]
) -> Iterator[tuple[str, GivenOptions]]:
    """Yield (label, options) for each value of one axis of a matrix."""
    if isinstance(values, dict):
        yield from values.items()
    else:
        for value in values:
            own: GivenOptions = {option: value}
            yield str(value), own


def _publication(file: StudyFile, options: GivenOptions, scale: str) -> StudyPublication:
    """Return what was published elsewhere, beside ``options``, those of this run."""
    published = {} if scale == PUBLISHED else file.scales.get(PUBLISHED, {})
    return StudyPublication(
        question=file.question,
        source=file.source,
        setup=file.setup,
        settings=[
            StudySetting(name=name, published=value, here=options.get(name))
            for name, value in published.items()
            if options.get(name) != value
        ],
        rates=[
            StudyRate(
                name=name,
                statement=rate.statement,
                published=rate.published,
                here=_here(rate, scale),
            )
            for name, rate in file.rates.items()
        ],
        figures=[_figures(group) for group in file.figures],
        errata=file.errata,
        differs=file.differs,
    )


def _figures(group: FileFigures) -> PublishedFigures:
    """Return a group of `figures` with each number in its metric's own unit."""
    return PublishedFigures(
        **{
            **asdict(group),
            "cells": {
                name: {metric: in_unit(metric, figure) for metric, figure in figures.items()}
                for name, figures in group.cells.items()
            },
        }
    )


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
            f"{metric}: '{figure}' is not a number with one of the units {', '.join(_UNITS)}."
        ) from None
    # Rounded, as 65.98 ms times 1000 is not exactly 65980 in floating point.
    return round(value * size * (1e6 if unit and "_us" in metric else 1), 9)
