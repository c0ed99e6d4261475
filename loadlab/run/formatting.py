"""Format numbers for the report and the terminal: rounded, with units.

None becomes "-" wherever a function accepts it.
"""

import datetime
from collections.abc import Iterable, Sequence

from loadlab.model import Difference, Latency, Load, MatrixLead, VerdictRow

NONE = "-"  # shown for an absent number


def plain(number: float) -> str:
    """Format a number without an exponent, with up to 15 significant digits and no trailing .0."""
    return f"{number:.15g}"


def number(value: float) -> str:
    """Format a number with all whole digits, or up to six significant ones: 0.5, 1,234.57,
    1,000,000."""
    return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,g}"


def significant(value: float | None, digits: int = 3) -> str:
    """Round to ``digits`` significant digits and keep all whole digits: 0.457, 10.4, 12,346."""
    if not value:
        return NONE if value is None else "0"
    shown = f"{value:.{digits}g}"
    size = abs(float(shown))
    places = 0
    while size < 10 ** (digits - 1 - places) and places < digits + 2:
        places += 1
    return f"{value:,.{places}f}"


def sentence(text: str) -> str:
    """Return a text as a sentence or a heading begins: with a capital, if that is a letter."""
    return text[:1].upper() + text[1:]


def count(value: float | None) -> str:
    """Format a count without decimals: 12,346."""
    return NONE if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Format a number per second, with one decimal below 100."""
    return NONE if value is None else (f"{value:,.0f}" if value >= 100 else f"{value:.1f}")


def between(rates: Sequence[float]) -> str:
    """Format the least and the largest of some numbers per second: 2,345 to 5,062."""
    least, most = rate(min(rates)), rate(max(rates))
    return most if least == most else f"{least} to {most}"


def listed(words: Sequence[str]) -> str:
    """Return words as an enumeration: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def asked(load: Load) -> str:
    """Return the load a cell asks for: a rate, a number of requests, or "closed loop"."""
    if load.mode == "batch":
        return plural(load.requests or 0, "request")
    return number(load.rate or 0) if load.mode == "constant" else "closed loop"


def unit(load: Load) -> str:
    """Return what a rate is of: requests/s, or visits/s."""
    return "visits/s" if load.session else "requests/s"


def ms(us: float | None) -> str:
    """Format µs as ms without the unit, to three significant digits."""
    return NONE if us is None else significant(us / 1000)


def bounded(latency: Latency, name: str) -> str:
    """Format a field of a latency summary, µs, as ms without the unit; "≥" before a lower bound."""
    us = getattr(latency, name)
    return ("≥ " if name in latency.at_least and us is not None else "") + ms(us)


def percent(fraction: float | None) -> str:
    """Format a fraction as percent, with one decimal below 10 %."""
    if fraction is None:
        return NONE
    value = 100 * fraction
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def share(part: int, whole: int | None) -> str:
    """Format ``part`` / ``whole`` as percent, as part_of does; "-" where ``whole`` is 0 or None."""
    return part_of(part / whole if whole else None)


def part_of(fraction: float | None) -> str:
    """Format a fraction of 0 or more as percent: "< 0.01 %" where it would round to 0."""
    if not fraction:
        return NONE if fraction is None else "0 %"
    value = 100 * fraction
    if value < 0.01:
        return "< 0.01 %"
    return f"{value:.{2 if value < 1 else 1 if value < 10 else 0}f} %"


def signed(fraction: float | None) -> str:
    """Format a relative difference as percent with its sign, with one decimal below 10 %."""
    if fraction is None:
        return NONE
    shown = _hundredths(fraction, abs(fraction))
    plus = "+" if shown.strip("0.") and fraction > 0 else ""
    return f"{plus}{shown} %"


def difference(apart: Difference | VerdictRow | MatrixLead) -> str:
    """Format a difference and its interval, if it has one: +12 % (8 to 16 %), from a doubling or a
    halving on 17.5 times (14.5 to 21.2), or where it is no fraction of the base, in points of
    percent: +0.12 points (0.08 to 0.16)."""
    if isinstance(apart, VerdictRow) and not apart.relative:
        return _points(apart)
    shown = relative(apart.value)
    if apart.low is None or apart.high is None:
        return shown
    if is_factor(apart.value):
        return f"{shown} ({_factor(apart.low)} to {_factor(apart.high)})"
    return f"{shown} ({span(apart.low, apart.high)})"


def relative(fraction: float | None) -> str:
    """Format a relative difference: as percent, from a doubling or a halving on as a factor."""
    if fraction is None or not is_factor(fraction):
        return signed(fraction)
    return f"{_factor(fraction)} times"


def is_factor(fraction: float | None) -> bool:
    """Return whether a relative difference is shown as a factor; nothing left is -100 %."""
    return fraction is not None and (fraction >= 1 or -1 < fraction <= -0.5)


def _factor(fraction: float) -> str:
    return significant(1 + fraction, 3 if fraction >= 0 else 2)


def _points(row: VerdictRow) -> str:
    value, low, high = (
        None if part is None else 100 * part for part in (row.value, row.low, row.high)
    )
    if value is None:
        return NONE
    shown = f"{value:+.2f} points" if round(value, 2) else "0 points"
    if low is None or high is None:
        return shown
    return f"{shown} ({low:.2f} to {high:.2f})" if round(low, 2) or round(high, 2) else shown


def span(low: float | None, high: float | None) -> str:
    """Format an interval of fractions as percent, both bounds with the same number of decimals."""
    if low is None or high is None:
        return NONE
    most = max(abs(low), abs(high))
    return f"{_hundredths(low, most)} to {_hundredths(high, most)} %"


def _hundredths(fraction: float, most: float) -> str:
    """Return 100 times the fraction, with one decimal where 100 times ``most`` is below 10."""
    shown = f"{100 * fraction:,.{0 if 100 * most >= 9.95 else 1}f}"
    return shown if shown.strip("-0.") else shown.removeprefix("-")


def latest(times: Iterable[float | None]) -> str | None:
    """Return the last of some times, unix seconds, as ISO 8601 UTC; None without any."""
    last = max((time for time in times if time is not None), default=None)
    if last is None:
        return None
    return datetime.datetime.fromtimestamp(last, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bits(per_second: float) -> str:
    """Format bits per second with a decimal prefix: 94.1 Mb/s."""
    for size, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if per_second >= size:
            return f"{significant(per_second / size)} {unit}"
    return f"{per_second:.0f} b/s"


def size(octets: float | None) -> str:
    """Format a number of bytes with a binary prefix: 1.50 GiB."""
    if octets is None:
        return NONE
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if octets >= unit:
            return f"{significant(octets / unit)} {name}"
    return f"{octets:.0f} B"


def lasting(seconds: float) -> str:
    """Format a duration: seconds below two minutes, minutes below two hours, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{60 * hours + minutes} min" if seconds < 7200 else f"{hours} h {minutes} min"


def minute(time: str) -> str:
    """Format a time as a document has it, ISO 8601 in UTC, to the minute: 2026-11-27 00:48 UTC."""
    return f"{time[:16].replace('T', ' ')} UTC"


def plural(number: int, noun: str) -> str:
    """Return '1 error', '2 errors' or 'no errors'."""
    return f"{'no' if number == 0 else f'{number:,}'} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, limit: int = 400) -> str:
    """Return untrusted text on one line, without control characters, cut at
    ``limit`` characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= limit else f"{words[:limit]}…"


def printable(text: str, limit: int = 8000) -> str:
    """Return untrusted text that is safe to print on a terminal, cut at ``limit`` characters.

    Newlines and tabs stay; every other unprintable character becomes its escape sequence.
    """
    shown = "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
        for c in text[:limit]
    )
    return shown if len(text) <= limit else f"{shown}…"


def percentile(name: str) -> str:
    """Return a percentile's name as it is printed: p99.9 for p99_9."""
    return name.replace("_", ".")
