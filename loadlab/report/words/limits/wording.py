"""The form of the words for one limit, and what the words of several limits share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from loadlab.model import Reason
from loadlab.run import formatting

SERVICES = {"nginx": "nginx", "application": "the application", "postgresql": "PostgreSQL"}


class Limit(NamedTuple):
    """One code.

    - words: the sentence on a reason, after "limited by"
    - out: why it was ruled out, from its evidence
    - meaning: without the values of one case
    - following: what to measure next; lesson: the name of the lesson on it; empty for none
    """

    words: Callable[[Reason], str]
    out: Callable[[Reason], str]
    meaning: str
    following: Callable[[Reason], str]
    lesson: Callable[[Reason], str] = lambda reason: ""


Limits: TypeAlias = dict[str, Limit]


def number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def fact(reason: Reason, name: str) -> float:
    return number(reason.facts[name])


def value(reason: Reason) -> float:
    return number(reason.value)


def always(text: str) -> Callable[[Reason], str]:
    return lambda reason: text


def part(name: str) -> Callable[[Reason], str]:
    """Return the words for a value that is a part of something."""
    return lambda reason: f"{name} {formatting.percent(value(reason))}"


def count(name: str) -> Callable[[Reason], str]:
    return lambda reason: formatting.plural(int(value(reason)), name)
