"""Read the rules of comparisons in files/methods.yml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
import yaml

from loadlab.core import documents
from loadlab.core.model import Record
from loadlab.core.model.base import Above0, Fraction, doc

FILE = Path("files") / "methods.yml"
ROOT = Path(__file__).parents[2]


class ComparisonRule(Record, kw_only=True, frozen=True):
    """How two cells are compared; files/methods.yml has the values."""

    margin: Annotated[
        Above0, doc("Largest bound of an interval, either sign, that is called no difference.")
    ]
    failed_max: Annotated[
        Fraction,
        doc(
            "Largest fraction of failed requests with which the latencies of the answers are "
            "compared, and by which a cell of lower response time may have failed more."
        ),
    ]
    planned_noise: Annotated[
        Above0, doc("Standard deviation of a repetition, a fraction, before anything is measured.")
    ]
    power: Annotated[
        Fraction, doc("Probability with which an ablation is to find a key that has an effect.")
    ]


@cache
def comparison_rule() -> ComparisonRule:
    """Return the lab's rule. Raises ResultError for a value that is missing or out of range."""
    found = yaml.safe_load(documents.text(ROOT / FILE))
    wanted = {field.name for field in msgspec.structs.fields(ComparisonRule)}
    rule = {name: value for name, value in found.items() if name in wanted}
    return documents.decode(rule, ComparisonRule, str(FILE))
