"""Check what a lesson's file says beside its cells and claims, before anything is measured."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from loadlab.model import Lesson, Prediction
from loadlab.run import expressions

# Name of the hosts as the reader left them, in the claims of an exercise.
CHECK = "check"
# Name of the cell of a transfer.
TRANSFER = "transfer"


def picture(path: Path) -> Path:
    """Return the picture that belongs to a lesson's file."""
    return path.with_suffix(".svg")


def check(lesson: Lesson, cells: Sequence[str]) -> None:
    """Raise ValueError with the place where the lesson names no cell, figure or form that exists.

    ``cells``: names of the lesson's own.
    """
    with _at("columns"):
        shown = [column.cell for column in lesson.columns]
        _refuse_unknown(shown, cells)
        _refuse_unknown(cells, shown)
    with _at("table"):
        for row in lesson.table:
            expressions.check_metric(row.metric)
            expressions.check_form(row.form or "")
    fits = lesson.fits
    with _at("fits"):
        for name, fitted in fits.items():
            _refuse_unknown(fitted, cells)
            if name in cells or not name.isidentifier():
                raise ValueError(f"'{name}' is the name of a cell, or no name")
    _check_predictions(lesson.predictions, cells, fits)
    with _at("explanation"):
        expressions.check_text(lesson.explanation, cells, fits)
    if lesson.exercise is not None:
        with _at("exercise"):
            solved = lesson.exercise.solution.cell
            _refuse_unknown([lesson.exercise.cell, *([solved] if solved else [])], cells)
            claims = [*lesson.exercise.cured, *lesson.exercise.price]
            for statement in (statement for claim in claims for statement in claim.all):
                _refuse_unknown(statement.cells, [*cells, CHECK])
                expressions.check_metric(statement.metric)
    if lesson.transfer is not None:
        with _at("transfer"):
            every = [*cells, TRANSFER]
            _refuse_unknown([lesson.transfer.cell], cells)
            _check_predictions(lesson.transfer.predictions, every, fits)
            expressions.check_text(lesson.transfer.explanation, every, fits)


@contextlib.contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None


def _check_predictions(
    predictions: Iterable[Prediction], cells: Sequence[str], fits: Collection[str]
) -> None:
    for number, prediction in enumerate(predictions, 1):
        with _at(f"prediction {number}"):
            if prediction.truth is not None:
                expressions.check(prediction.truth, cells, fits)
            for option in (prediction.options or {}).values():
                if not expressions.is_condition(option.holds):
                    raise ValueError(f"'{option.holds}' is no condition")
                expressions.check(option.holds, cells, fits)


def _refuse_unknown(named: Iterable[str], cells: Sequence[str]) -> None:
    for name in named:
        if name not in cells:
            raise ValueError(f"'{name}' is no cell. There are: {', '.join(cells)}")
