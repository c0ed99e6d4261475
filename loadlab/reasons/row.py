"""A reason's code is a row: words, meaning, remedy, thresholds and cause stand in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from loadlab.model import Reason

# What voids a repetition, which decides whether a repeat may help.
# - outside: another machine, or another program on the host, took its CPU
# - hosts: the load is too much for these hosts, so a repeat is as likely void
# - passing: the rest
Cause: TypeAlias = Literal["outside", "hosts", "passing"]


@dataclass(frozen=True)
class ReasonRow:
    """A code.

    - words: of a reason, with its values and without the code
    - remedy: what the user can do; None where there is nothing
    - meaning: of the code, without the values of a reason
    - thresholds: that it stands on, by their names in files/validity.yml or files/methods.yml
    - cause: of a void repetition
    """

    words: Callable[[Reason], str]
    remedy: str | None = None
    _: KW_ONLY
    meaning: str
    thresholds: tuple[str, ...] = ()
    cause: Cause | None = None


ReasonTable: TypeAlias = dict[str, ReasonRow]


@dataclass(frozen=True)
class ReasonPart:
    """Rows that docs/troubleshooting.md shows in one table, below a heading and a text."""

    heading: str
    text: str
    rows: ReasonTable


def number(value: object) -> float:
    """Return a number of a reason; raises TypeError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def value(reason: Reason) -> float:
    """Return the value of a reason."""
    return number(reason.value)


def limit(reason: Reason) -> float:
    """Return the limit of a reason."""
    return number(reason.limit)


def fact(reason: Reason, name: str) -> float:
    """Return a fact of a reason that is a number."""
    return number(reason.facts[name])


def names(reason: Reason, fact: str) -> list[str]:
    """Return a fact of a reason that is a list; raises TypeError where it is none."""
    listed = reason.facts[fact]
    if not isinstance(listed, list):
        raise TypeError(f"{listed!r} is not a list")
    return listed


def template(text: str) -> Callable[[Reason], str]:
    """Return the words that ``text`` is once a reason's value, limit and facts are filled in."""
    return lambda reason: text.format(value=reason.value, limit=reason.limit, **reason.facts)
