"""Words for what a request cost, and what a run's cloud instances cost: once for terminal and
page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlab.hosts import ec2_price
from loadlab.model import (
    CellSummary,
    CloudInstance,
    Cost,
    CostPart,
    CurveSummary,
    Manifest,
    NoiseFloor,
    Sample,
    SearchSummary,
    Summary,
)
from loadlab.run import formatting
from loadlab.run.formatting import plural

# Metric -> its name, and its unit in a table.
NAMES: Mapping[str, str] = {
    "cpu": "CPU",
    "cpu_nginx": "CPU of nginx",
    "cpu_application": "CPU of the application",
    "cpu_postgresql": "CPU of PostgreSQL",
    "cpu_kernel": "CPU in the kernel",
    "cpu_interrupts": "interrupts",
    "switches": "context switches",
    "memory": "memory",
    "memory_before": "memory before the load",
    "energy": "energy",
}
UNITS: Mapping[str, str] = {
    **{name: "µs/request" for name in NAMES if name.startswith("cpu")},
    "switches": "per request",
    "memory": "MiB",
    "memory_before": "MiB",
    "energy": "mJ/request",
}
MEMORY = {"pss": "proportional set size", "rss": "resident"}


def scaled(metric: str, value: float | None) -> float | None:
    """Return a part of the cost in the unit of UNITS."""
    if value is None:
        return None
    if metric.startswith("memory"):
        return value / 2**20
    return 1000 * value if metric == "energy" else value


def number(metric: str, value: float | None) -> str:
    """Return a part of the cost in the unit of UNITS, in words without the unit."""
    amount = scaled(metric, value)
    return formatting.NONE if amount is None else formatting.significant(amount)


def span(metric: str, found: Sample | None) -> str:
    """Return the interval of a median, without the unit; empty where it has none."""
    if found is None or found.low is None:
        return ""
    return f"{number(metric, found.low)} to {number(metric, found.high)}"


def median(metric: str, found: Sample | None) -> str:
    """Return a median and its interval, without the unit."""
    bounds = span(metric, found)
    return number(metric, None if found is None else found.median) + (
        f" ({bounds})" if bounds else ""
    )


def floor(floors: Sequence[NoiseFloor], cell: CellSummary, metric: Cost | CostPart) -> float | None:
    """Return the noise floor of a cell in a metric, a fraction: its own, else the largest there is.

    None where no A/A control has it.
    """
    own = largest_floor([one for one in floors if one.cell_id == cell.cell_id], metric)
    return largest_floor(floors, metric) if own is None else own


def largest_floor(floors: Sequence[NoiseFloor], metric: Cost | CostPart) -> float | None:
    """Return the largest of the noise floors in a metric, a fraction; None where there is none."""
    known = [one.noise_floor for one in floors if one.metric == metric]
    return max((one for one in known if one is not None), default=None)


def prices(manifest: Manifest | None) -> dict[str, float]:
    """Return host -> USD per hour, of those of the run's hosts whose price is known."""
    every = (manifest.instances if manifest else None) or []
    return {one.host: one.usd_per_hour for one in every if one.usd_per_hour is not None}


def per_million(
    summary: Summary, cell: CellSummary, usd_per_hour: Mapping[str, float]
) -> tuple[str, str] | None:
    """Return the USD of the server's time for a million requests, and a remark.

    At the highest rate that met the objective of a search or a curve; the lowest rate that missed
    it gives the lower bound. None where a rate or the price of the server is not known.
    """
    server = next((rep.server for rep in cell.repetitions if rep.server), None)
    hour, found = usd_per_hour.get(server or ""), _objective(summary, cell)
    if hour is None or found is None:
        return None
    rate, missed = found
    amount = formatting.significant(ec2_price.per_million(hour, rate))
    remark = f"at {rate:,g} requests/s, the highest rate within the objective"
    if missed is not None:
        low = formatting.significant(ec2_price.per_million(hour, missed))
        remark += f"; above {low}, as {missed:,g} missed it"
    return amount, remark


def _objective(summary: Summary, cell: CellSummary) -> tuple[float, float | None] | None:
    """Return the highest rate that met an objective, and the lowest above it that missed it."""
    every: list[SearchSummary | CurveSummary] = [*summary.searches, *summary.curves]
    for one in every:
        rate = one.found if isinstance(one, SearchSummary) else one.within
        if one.cell_id == cell.cell_id and rate is not None:
            missed = [step.rate for step in one.trace if step.met is False and step.rate > rate]
            return rate, min(missed, default=None)
    return None


def sentence(instances: Sequence[CloudInstance]) -> str:
    """Return the cost up to the last collection of results, of one or more instances."""
    hours = sum(one.hours for one in instances)
    beginning = f"{plural(len(instances), 'instance')} for {hours:.2f} h together"
    known = [one for one in instances if one.usd is not None]
    dates = ", ".join(sorted({one.prices_of for one in instances}))
    amount = (
        f"about {sum(one.usd or 0.0 for one in known):.2f} USD up to here, by the list prices of "
        f"{dates}, without traffic"
    )
    if len(known) == len(instances):
        return f"{beginning}: {amount}. Instances cost until they are removed."
    unknown = [one for one in instances if one.usd is None]
    kinds = ", ".join(sorted({_kind(one) for one in unknown}))
    if not known:
        return f"{beginning}: the price is unknown, as files/aws_prices.yml does not have {kinds}."
    return f"{beginning}: {amount}, and the unknown price of {kinds}."


def _kind(one: CloudInstance) -> str:
    bought = " as spot" if one.spot else ""
    return f"{one.type}{bought}{' with dedicated tenancy' if one.tenancy != 'default' else ''}"
