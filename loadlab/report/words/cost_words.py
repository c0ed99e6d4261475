"""Words for what a run's cloud instances cost: once for terminal and page."""

from collections.abc import Mapping, Sequence

from loadlab.hosts import ec2_price
from loadlab.model import CellSummary, CloudInstance, CurveSummary, Manifest, SearchSummary, Summary
from loadlab.results import metrics
from loadlab.run import formatting
from loadlab.run.formatting import plural


def prices(manifest: Manifest | None) -> dict[str, float]:
    """Return host -> USD per hour, of those of the run's hosts whose price is known."""
    instances = (manifest.instances if manifest else None) or []
    return {host.host: host.usd_per_hour for host in instances if host.usd_per_hour is not None}


def per_million(
    summary: Summary, cell: CellSummary, usd_per_hour: Mapping[str, float]
) -> tuple[str, str] | None:
    """Return the USD of the server's time for a million requests, and a remark.

    At the highest rate that met the objective of a search or a curve; the lowest rate that missed
    it gives the lower bound. None where a rate or the price of the server is not known.
    """
    hour, rates = usd_per_hour.get(metrics.measured_on(cell) or ""), _objective(summary, cell)
    if hour is None or rates is None:
        return None
    rate, missed = rates
    amount = formatting.significant(ec2_price.per_million(hour, rate))
    remark = f"at {formatting.number(rate)} requests/s, the highest rate within the objective"
    if missed is not None:
        low = formatting.significant(ec2_price.per_million(hour, missed))
        remark += f"; above {low}, as {formatting.number(missed)} missed it"
    return amount, remark


def _objective(summary: Summary, cell: CellSummary) -> tuple[float, float | None] | None:
    """Return the highest rate that met an objective, and the lowest above it that missed it."""
    trials: list[SearchSummary | CurveSummary] = [*summary.searches, *summary.curves]
    for trial in trials:
        rate = trial.highest_rate if isinstance(trial, SearchSummary) else trial.within
        if trial.cell_id == cell.cell_id and rate is not None:
            missed = [step.rate for step in trial.trace if step.met is False and step.rate > rate]
            return rate, min(missed, default=None)
    return None


def sentence(instances: Sequence[CloudInstance]) -> str:
    """Return the cost up to the last collection of results, of one or more instances."""
    hours = sum(instance.hours for instance in instances)
    beginning = f"{plural(len(instances), 'instance')} for {hours:.2f} h together"
    costs = [instance.usd for instance in instances if instance.usd is not None]
    dates = ", ".join(sorted({instance.prices_of for instance in instances}))
    amount = (
        f"about {sum(costs):.2f} USD up to here, by the list prices of {dates}, without traffic"
    )
    if len(costs) == len(instances):
        return f"{beginning}: {amount}. Instances cost until they are removed."
    kinds = ", ".join(sorted({_kind(instance) for instance in instances if instance.usd is None}))
    if not costs:
        return f"{beginning}: the price is unknown, as files/aws_prices.yml does not have {kinds}."
    return f"{beginning}: {amount}, and the unknown price of {kinds}."


def _kind(instance: CloudInstance) -> str:
    bought = " as spot" if instance.spot else ""
    tenancy = " with dedicated tenancy" if instance.tenancy != "default" else ""
    return f"{instance.type}{bought}{tenancy}"
