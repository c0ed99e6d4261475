"""Words for metrics, percentiles and intervals with their units."""

from collections.abc import Callable, Mapping

from loadlab.model import PercentileInterval, Sample
from loadlab.model.metric_rows import FRACTION, MIB, MS, PER_SECOND, ROWS, US_PER_REQUEST, Unit
from loadlab.run import formatting
from loadlab.stats import histograms, inference

MEMORY = {"pss": "proportional set size", "rss": "resident"}
# A number of the documents with its unit; other units as with_unit() says.
_WITH_UNIT: Mapping[Unit, Callable[[float], str]] = {
    PER_SECOND: lambda rate: f"{formatting.rate(rate)}/s",
    MS: lambda us: f"{formatting.ms(us)} ms",
    US_PER_REQUEST: lambda us: f"{formatting.significant(us)} µs",
    MIB: formatting.size,
    FRACTION: formatting.part_of,
}


def label(metric: str) -> str:
    """Return the name of a metric in a report. Raises KeyError for one without a row."""
    return ROWS[metric].label or metric


def short(metric: str) -> str:
    """Return the short name of a metric, of a figure and a comparison on the terminal."""
    return ROWS[metric].short or label(metric)


def heading(metric: str) -> str:
    """Return the head of a metric's column: its name and unit."""
    return f"{label(metric)}, {ROWS[metric].unit.name}"


def scaled(metric: str, value: float | None) -> float | None:
    """Return a metric in the unit that it is shown in."""
    return None if value is None else value / ROWS[metric].unit.size


def number(metric: str, value: float | None) -> str:
    """Return a metric in the unit that it is shown in, without the unit."""
    amount = scaled(metric, value)
    if amount is None:
        return formatting.NONE
    is_rate = ROWS[metric].unit == PER_SECOND
    return formatting.rate(amount) if is_rate else formatting.significant(amount)


def terse(metric: str, value: float | None) -> str:
    """Return a metric for a narrow column, with its unit if that is short: 12.3ms."""
    return number(metric, value) + (ROWS[metric].unit.after if value is not None else "")


def with_unit(metric: str, value: float | None) -> str:
    """Return a metric with its unit: 12.3 ms."""
    if value is None:
        return formatting.NONE
    unit = ROWS[metric].unit
    if unit in _WITH_UNIT:
        return _WITH_UNIT[unit](value)
    return f"{number(metric, value)} {unit.name}"


def span(metric: str, sample: Sample | None) -> str:
    """Return the interval of a median, without the unit; empty where it has none."""
    if sample is None or sample.low is None:
        return ""
    return f"{number(metric, sample.low)} to {number(metric, sample.high)}"


def median(metric: str, sample: Sample | None) -> str:
    """Return a median and its interval, without the unit."""
    bounds = span(metric, sample)
    middle = number(metric, None if sample is None else sample.median)
    return f"{middle} ({bounds})" if bounds else middle


def visit_time(us: float | None) -> str:
    """Format the time of a visit as ms without the unit, with "≥" where it is an hour or longer."""
    is_longest = us is not None and us >= histograms.HIGHEST_US
    return ("≥ " if is_longest else "") + formatting.ms(us)


def interval(bounds: PercentileInterval) -> str:
    """Return a percentile's interval in ms; empty where there is none."""
    if bounds.low is None:
        return ""
    return f"{inference.LEVEL * 100:.0f} % interval {in_ms(bounds)} ms"


def in_ms(bounds: PercentileInterval) -> str:
    """Return a percentile interval's bounds (µs) in ms, without the unit."""
    return f"{formatting.ms(bounds.low)} to {formatting.ms(bounds.high)}"


def levels() -> str:
    """Return a sentence on the coverage of medians of few repetitions."""
    least, level = inference.LEAST, inference.level
    shares = [f"{100 * level(count):.0f}" for count in (least, least + 1, least + 2)]
    return (
        f"An interval of a median of {least}, {least + 1} or {least + 2} repetitions holds the "
        f"true median in {', '.join(shares[:-1])} or {shares[-1]} % of cases, of more in "
        f"{100 * inference.LEVEL:.0f} %."
    )


def is_united(path: str) -> bool:
    """Return whether quantity() gives a reading a unit."""
    return "_us" in path or path.endswith(("_fraction", "_bytes"))


def quantity(path: str | None, number: float) -> str:
    """Format a reading by the unit in its path: latencies in ms, CPU in µs, fractions in percent,
    memory in MiB.

    ``path`` is None for a ratio.
    """
    if path is not None:
        if path.endswith("us_per_request"):
            return _WITH_UNIT[US_PER_REQUEST](number)
        if "_us" in path:
            return _WITH_UNIT[MS](number)
        if path.endswith("_fraction"):
            return formatting.percent(number)
        if path.endswith("_bytes"):
            return _WITH_UNIT[MIB](number)
    if number >= 1000 or (path is not None and number == int(number)):
        return formatting.count(number)
    return formatting.significant(number)
