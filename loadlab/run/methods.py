"""Read the rule of comparisons and the objective of cells in files/methods.yml."""

from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from loadlab.model import Record
from loadlab.model.base import Above0, Fraction, NotNegative
from loadlab.run import documents
from loadlab.run.catalog import load_yaml

FILE = Path("files") / "methods.yml"
ROOT = Path(__file__).parents[2]

R = TypeVar("R", bound=msgspec.Struct)


class ComparisonRule(Record, kw_only=True, frozen=True):
    """How two cells are compared; files/methods.yml has the values."""

    margin: Above0  #: Largest bound of an interval, either sign, that is called no difference.
    #: The same where one load measures both side by side, of the metrics that this suits.
    lanes_margin: Above0
    #: Part of the server's CPU time above which a load that measures several side by side calls no
    #: equal percentiles no difference.
    lanes_crowd: Fraction
    #: Largest fraction of failed requests with which the latencies of the answers are compared, and
    #: by which a cell of lower response time may have failed more.
    failed_max: Fraction
    #: Change of the bytes of an answer above which two repetitions had other answers.
    answers_change: Above0
    #: Standard deviation of a repetition, a fraction, before anything is measured.
    planned_noise: Above0
    power: Fraction  #: Probability with which an ablation is to find a key that has an effect.


class _Objective(Record, kw_only=True, frozen=True):
    curve_slo: dict[str, NotNegative]  #: p99_ms, errors.


@cache
def comparison_rule() -> ComparisonRule:
    """Return the lab's rule. Raises ResultError for a value that is missing or out of range."""
    return read(ComparisonRule)


@cache
def objective() -> dict[str, float]:
    """Return the objective with which a cell has no limit. Raises ResultError as above."""
    return read(_Objective).curve_slo


def read(record: type[R], root: Path = ROOT) -> R:
    """Return the values of files/methods.yml that a record has.

    Raises ResultError for a value that is missing or out of range.
    """
    values = load_yaml(root / FILE)
    names = {field.name for field in msgspec.structs.fields(record)}
    return documents.decode(
        {name: value for name, value in values.items() if name in names}, record, str(FILE)
    )
