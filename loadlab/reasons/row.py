"""A reason's code is a row: words, meaning, remedy, thresholds and cause stand in one place."""

import string
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

from loadlab.model import Reason
from loadlab.run import formatting

# What voids a repetition, which decides whether a repeat may help.
# - outside: another machine, or another program on the host, took its CPU
# - hosts: the load is too much for these hosts, so a repeat is as likely void
# - passing: the rest
Cause: TypeAlias = Literal["outside", "hosts", "passing"]


# Words for a reason: a template, in which its value, limit and facts are filled in, or a function.
Words: TypeAlias = str | Callable[[Reason], str]


@dataclass(frozen=True)
class ReasonRow:
    """A code."""

    words: Words  #: Of a reason, with its values and without the code.
    remedy: str | None = None  #: What the user can do; None where there is nothing.
    _: KW_ONLY
    meaning: str  #: Of the code, without the values of a reason.
    #: That it stands on, by their names in Thresholds or files/methods.yml.
    thresholds: tuple[str, ...] = ()
    cause: Cause | None = None  #: Of a void repetition.
    #: A few words on all reasons of the code that voided repetitions of a cell, with {} for their
    #: values; "" for the code itself.
    brief: str = ""
    form: str = ""  #: Of a value in them, as in a template.


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


# What a template says behind a colon, besides the formats of Python: how a number is shown, or
# names. "n block" counts: 1 block, 2 blocks.
_FORMS: dict[str, Callable[[Any], str]] = {
    "percent": lambda fraction: formatting.percent(number(fraction)),
    "part": lambda fraction: formatting.part_of(number(fraction)),
    "signed": lambda fraction: formatting.signed(number(fraction)),
    "two": lambda digits: formatting.significant(number(digits), 2),
    "ms": lambda us: formatting.ms(number(us)),
    "whole_ms": lambda us: f"{number(us) / 1000:g}",
    "p": lambda p: formatting.significant(number(p), 2) if p >= 0.001 else "below 0.001",
    "percentile": formatting.percentile,
    "list": ", ".join,
    "and": " and ".join,
}


# What a form multiplies a number by.
_SCALES = {"percent": 100.0, "part": 100.0, "ms": 0.001}


class _Limited(float):
    """The value of a reason, beside its limit."""

    limit: float


class _Formatter(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        """Return a number in a form; of a value with as many digits as tell it from its limit."""
        text = self._formatted(value, format_spec)
        if (
            not isinstance(value, _Limited)
            or value == value.limit
            or text != self._formatted(value.limit, format_spec)
        ):
            return text
        scale = _SCALES.get(format_spec, 100.0 if format_spec.endswith("%") else 1.0)
        unit = text.lstrip("<0123456789.,-")
        for digits in range(1, 16):
            shown = f"{scale * value:,.{digits}f}"
            if shown != f"{scale * value.limit:,.{digits}f}":
                return shown + unit
        return text

    def _formatted(self, value: object, format_spec: str) -> str:
        if form := _FORMS.get(format_spec):
            return form(value)
        if format_spec.startswith("n "):
            return formatting.plural(int(number(value)), format_spec.removeprefix("n "))
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


def words_of(words: Words, reason: Reason) -> str:
    """Return the words for a reason."""
    if callable(words):
        return words(reason)
    return _FORMATTER.format(words, value=_limited(reason), limit=reason.limit, **reason.facts)


def shown(reason: Reason, form: str) -> str:
    """Return the value of a reason in a form of a template, told from its limit."""
    return str(_FORMATTER.format_field(_limited(reason), form))


def brief(row: ReasonRow, reasons: Sequence[Reason]) -> str:
    """Return the few words of a row on reasons of its code, with their least and largest value."""
    if "{}" not in row.brief:
        return row.brief or reasons[0].code.replace("_", " ")
    least, most = (shown(edge(reasons, key=value), row.form) for edge in (min, max))
    number = least.removesuffix(" %")
    return row.brief.format(most if least == most else f"{number} to {most}")


def _limited(reason: Reason) -> object:
    if not isinstance(reason.value, float) or not isinstance(reason.limit, int | float):
        return reason.value
    limited = _Limited(reason.value)
    limited.limit = float(reason.limit)
    return limited
