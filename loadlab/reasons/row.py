"""A reason's code is a row: words, meaning, remedy, thresholds and cause stand in one place."""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

from loadlab.model import Facts, Reason
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
    cause: Cause = "passing"  #: Of a void repetition.
    #: A few words on all reasons of the code that voided repetitions of a cell, with {:form} for
    #: their values; "" for the code itself.
    brief: str = ""


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


def over(
    code: str, value: float, limit: float, **facts: float | str | list[str] | None
) -> Iterator[Reason]:
    """Yield a reason where a value is over its limit."""
    if value > limit:
        own: Facts = {**facts}
        yield Reason(code=code, value=value, limit=limit, facts=own)


# What a template says behind a colon, besides the formats of Python: how a number is shown, or
# names. "n block" counts: 1 block, 2 blocks. "1000*g" is g of a number times 1,000.
_FORMS: dict[str, Callable[[Any], str]] = {
    ",g": lambda value: formatting.number(number(value)),
    "percent": lambda fraction: formatting.percent(number(fraction)),
    "rest": lambda fraction: formatting.percent(1 - min(1.0, number(fraction))),
    "part": lambda fraction: formatting.part_of(number(fraction)),
    "signed": lambda fraction: formatting.signed(number(fraction)),
    "two": lambda digits: formatting.significant(number(digits), 2),
    "three": lambda digits: formatting.significant(number(digits)),
    "ms": lambda us: formatting.ms(number(us)),
    "us": lambda us: f"{us / 1000:,.2f} ms" if number(us) >= 1000 else f"{us:.0f} µs",
    "bits": lambda per_second: formatting.bits(number(per_second)),
    "p": lambda p: formatting.significant(number(p), 2) if p >= 0.001 else "below 0.001",
    "percentile": formatting.percentile,
    "withheld": lambda names: f"{' and '.join(map(formatting.percentile, names))} withheld",
    "list": ", ".join,
    "and": " and ".join,
    "if": lambda _: "",
}
# What a form multiplies a number by.
_SCALES = {"percent": 100.0, "part": 100.0, "ms": 0.001}
# [this|or this]: the second, or nothing, where a fact of the first is absent, 0, false or empty.
_OPTIONAL = re.compile(r"\[([^]|]*)\|?([^]|]*)\]")


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
        factor, _, form = format_spec.rpartition("*")
        scale = float(factor or 1) * _SCALES.get(form, 100.0 if form.endswith("%") else 1.0)
        unit = text.lstrip("<0123456789.,-")
        if unit == " ms":
            scale *= 0.001
        for digits in range(1, 16):
            shown = f"{scale * value:,.{digits}f}"
            if shown != f"{scale * value.limit:,.{digits}f}":
                return shown + unit
        return text

    def _formatted(self, value: object, format_spec: str) -> str:
        factor, times, scaled = format_spec.partition("*")
        if times:
            return self._formatted(float(factor) * number(value), scaled)
        if form := _FORMS.get(format_spec):
            return form(value)
        if format_spec.startswith("n "):
            return formatting.plural(int(number(value)), format_spec.removeprefix("n "))
        text = str(super().format_field(value, format_spec))
        # Python's own percentage has no space.
        return text.replace("%", " %") if format_spec.endswith("%") else text


_FORMATTER = _Formatter()


def words_of(words: Words, reason: Reason, **more: object) -> str:
    """Return the words for a reason; ``more``: further facts, or other values of its own."""
    if callable(words):
        return words(reason)
    fields = {"value": _limited(reason), "limit": reason.limit, **reason.facts, **more}

    def kept(part: re.Match[str]) -> str:
        needed = [name for _, name, *_ in _FORMATTER.parse(part[1]) if name]
        return part[1] if all(fields.get(name) for name in needed) else part[2]

    return _FORMATTER.format(_OPTIONAL.sub(kept, words), **fields)


def by(fact: str, words: Mapping[str, Words], otherwise: Words = "") -> Callable[[Reason], str]:
    """Return the words by the text of a fact; ``otherwise`` for another, and where it is absent."""
    return lambda reason: words_of(words.get(str(reason.facts.get(fact)), otherwise), reason)


def where(fact: str, words: Words, otherwise: Words) -> Callable[[Reason], str]:
    """Return the words where a fact is there; ``otherwise`` where it is absent or null."""
    return by(fact, {"None": otherwise}, words)


def shown(reason: Reason, form: str) -> str:
    """Return the value of a reason in a form of a template, told from its limit."""
    return str(_FORMATTER.format_field(_limited(reason), form))


def brief(row: ReasonRow, reasons: Sequence[Reason]) -> str:
    """Return the few words of a row on reasons of its code, with their least and largest value."""
    form = re.search(r"{:(.*)}", row.brief)
    if form is None:
        return row.brief or reasons[0].code.replace("_", " ")
    least, most = (shown(edge(reasons, key=value), form[1]) for edge in (min, max))
    number = least.removesuffix(" %")
    return row.brief.replace(form[0], most if least == most else f"{number} to {most}")


def _limited(reason: Reason) -> object:
    if not isinstance(reason.value, float) or not isinstance(reason.limit, int | float):
        return reason.value
    limited = _Limited(reason.value)
    limited.limit = float(reason.limit)
    return limited
