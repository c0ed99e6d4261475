"""Words for metrics, percentiles and intervals with their units."""

from __future__ import annotations

from loadlab.model import PercentileInterval
from loadlab.run import formatting
from loadlab.stats import inference


def percentile(name: str) -> str:
    """Return a percentile's name as it is printed: p99.9 for p99_9."""
    return name.replace("_", ".")


def interval(found: PercentileInterval) -> str:
    """Return a percentile's interval in ms; empty where there is none."""
    if found.low is None:
        return ""
    return f"{inference.LEVEL * 100:.0f} % interval {bounds(found)} ms"


def bounds(found: PercentileInterval) -> str:
    """Return a percentile interval's bounds (µs) in ms, without the unit."""
    return f"{formatting.ms(found.low)} to {formatting.ms(found.high)}"


def levels() -> str:
    """Return a sentence on the coverage of medians of few repetitions."""
    least, level = inference.LEAST, inference.level
    shares = [f"{100 * level(count):.0f}" for count in (least, least + 1, least + 2)]
    return (
        f"An interval of a median of {least}, {least + 1} or {least + 2} repetitions holds the "
        f"true median in {', '.join(shares[:-1])} or {shares[-1]} % of cases, of more in "
        f"{100 * inference.LEVEL:.0f} %."
    )


def is_united(metric: str) -> bool:
    """Return whether quantity() gives the metric a unit."""
    return "_us" in metric or metric.endswith(("_fraction", "_bytes"))


def quantity(metric: str | None, number: float) -> str:
    """Format a metric's value: latencies in ms, CPU in µs, fractions in percent, memory in MiB.

    ``metric`` is None for a ratio.
    """
    if metric is not None:
        if metric.endswith("us_per_request"):
            return f"{formatting.significant(number)} µs"
        if "_us" in metric:
            return f"{formatting.ms(number)} ms"
        if metric.endswith("_fraction"):
            return formatting.percent(number)
        if metric.endswith("_bytes"):
            return formatting.size(number)
    if number >= 1000 or (metric is not None and number == int(number)):
        return formatting.count(number)
    return formatting.significant(number)
