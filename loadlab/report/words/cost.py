"""Words for what a run's cloud instances cost, once for terminal and page."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.core.formatting import plural
from loadlab.core.model import CloudInstance


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
