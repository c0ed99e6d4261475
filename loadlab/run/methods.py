"""Read the rules of comparisons and of limits in files/methods.yml."""

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


class LimitRule(Record, kw_only=True, frozen=True):
    """From which values on something is called the limit of a cell; files/methods.yml has them."""

    curve_slo: dict[str, NotNegative]  #: The objective: p99_ms, errors.
    limit_cpu_full: Fraction  #: Part of the cores' time.
    limit_core_full: Fraction  #: Part of one core's time.
    limit_cpu_share: Fraction  #: Part of the CPU time used.
    limit_waiting: Fraction  #: Part of the time of the requests.
    limit_in_use: Fraction  #: Part of the database connections.
    limit_crowd: Above0  #: Requests under way for each connection or thread.
    limit_queue: Above0  #: Mean connections in an accept queue.
    limit_affected: Fraction  #: Part of the requests that were due.
    limit_pressure: Fraction  #: Part of the time.
    limit_round_trip: Fraction  #: Part of the time of the requests.
    limit_far_ms: NotNegative  #: Round trip, ms.
    limit_explained: Fraction  #: Part of the time of the requests.
    limit_doubled: NotNegative  #: Growth of the right answers per second.


@cache
def comparison_rule() -> ComparisonRule:
    """Return the lab's rule. Raises ResultError for a value that is missing or out of range."""
    return read(ComparisonRule)


@cache
def limit_rule() -> LimitRule:
    """Return the lab's rule. Raises ResultError for a value that is missing or out of range."""
    return read(LimitRule)


def read(record: type[R], root: Path = ROOT) -> R:
    """Return the values of files/methods.yml that a record has.

    Raises ResultError for a value that is missing or out of range.
    """
    values = load_yaml(root / FILE)
    names = {field.name for field in msgspec.structs.fields(record)}
    return documents.decode(
        {name: value for name, value in values.items() if name in names}, record, str(FILE)
    )
