"""Work out what instances cost and how long they must live."""

import datetime as dt
from collections.abc import Iterable, Mapping

from msgspec import Struct

from loadlab.model import CloudInstance, LaunchedInstance

HOURS_A_MONTH = 730
# A load takes longer than planned: stacks restart between measurements, and repeats of void
# measurements take at most half as long again (plan/repeats.py). Before and after it hosts are
# tuned, calibrated and their files fetched.
LOAD_MARGIN = 1.6
BESIDE_LOAD_S = 20 * 60
# Shortest lifetime of an instance, hours.
SHORTEST_H = 0.25


class Prices(Struct, frozen=True, kw_only=True):
    """Prices of files/aws_prices.yml, USD: an hour of an instance, its disk and its address."""

    date: str
    regions: dict[str, dict[str, float]]
    volume_gb_month: float  #: A GB of disk for a month.
    address_hour: float  #: A public IPv4 address.
    dedicated_region_hour: float  #: The fee for dedicated tenancy in a region.


def needed_s(load_s: float) -> float:
    """Return the seconds that instances must live for ``load_s`` seconds of load; 0 for no load."""
    return LOAD_MARGIN * load_s + BESIDE_LOAD_S if load_s else 0.0


def host_hour(prices: Prices, region: str, kind: str, disk_gb: int) -> float | None:
    """Return the USD per hour of an instance on demand, with its disk and public address.

    None where the table lacks the type.
    """
    price = prices.regions.get(region, {}).get(kind)
    if price is None:
        return None
    return price + disk_gb * prices.volume_gb_month / HOURS_A_MONTH + prices.address_hour


def per_million(usd_per_hour: float, rate: float) -> float:
    """Return the USD that a million requests cost on a host, at ``rate`` requests/s (above 0)."""
    return 1e6 * usd_per_hour / (3600 * rate)


def estimate(
    prices: Prices, region: str, types: Iterable[str], disk_gb: int, dedicated: bool
) -> float | None:
    """Return the USD per hour of these instances on demand, with disks and public addresses.

    ``types``: one instance type for each host; ``disk_gb``: GB of each disk. Dedicated tenancy adds
    its fee for the region; its surcharge on each instance is not in the table. None where the table
    lacks a price.
    """
    hosts = [host_hour(prices, region, kind, disk_gb) for kind in types]
    fee = prices.dedicated_region_hour if dedicated else 0.0
    prices_known = [price for price in hosts if price is not None]
    return sum(prices_known) + fee if len(prices_known) == len(hosts) else None


def lifetime_s(max_hours: float, budget_usd: float, usd_per_hour: float | None) -> int:
    """Return the seconds after which instances terminate themselves: as long as the budget pays for
    them, ``max_hours`` at most. A budget of 0 sets no limit."""
    paid = budget_usd / usd_per_hour if budget_usd and usd_per_hour else max_hours
    return int(3600 * min(max_hours, paid))


def budget_refusal(
    budget_usd: float, usd_per_hour: float | None, dedicated: bool, source: str
) -> str:
    """Return why a budget cannot be kept; "" where it can, or where there is none (0).

    ``source``: where the table of prices comes from.
    """
    if not budget_usd:
        return ""
    if usd_per_hour is None or dedicated:
        problem = (
            "the table lacks what dedicated tenancy adds to each instance"
            if dedicated
            else "files/aws_prices.yml lacks this region or these types"
        )
        return (
            f"aws_hosts_budget_usd: {budget_usd:g} USD cannot be kept, as the price is not known: "
            f"{problem}. Choose other types, add their prices ({source}), or leave the budget out "
            "and limit the time alone (-e aws_hosts_max_lifetime=<hours>)."
        )
    if budget_usd < SHORTEST_H * usd_per_hour:
        paid = 60 * budget_usd / usd_per_hour
        return (
            f"aws_hosts_budget_usd: {budget_usd:g} USD pay for {paid:.0f} min at "
            f"{usd_per_hour:.2f} USD an hour, and the shortest lifetime is "
            f"{60 * SHORTEST_H:g} min. Give at least {SHORTEST_H * usd_per_hour:.2f}, or choose "
            "smaller types."
        )
    return ""


def going_on(usd_per_hour: float | None) -> str:
    """Return what instances go on costing until they end."""
    price = (
        "at an unknown price" if usd_per_hour is None else f"about {usd_per_hour:.2f} USD an hour"
    )
    return f"The instances go on until they terminate themselves ({price})."


class HostInstance(LaunchedInstance, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An instance of a run, as the inventory has it."""

    region: str
    disk_gb: int


def used(
    prices: Prices,
    now: dt.datetime,
    hosts: Mapping[str, HostInstance],
    before: Iterable[CloudInstance],
) -> list[CloudInstance]:
    """Return the instances of a run with their hours and cost up to ``now``.

    ``hosts``: host -> its instance. ``before``: those of the run's earlier manifest, of which some
    may have ended since.
    """
    present = {instance.instance_id for instance in hosts.values()}
    ended = [instance for instance in before if instance.instance_id not in present]
    return [*ended, *(_used(prices, now, name, instance) for name, instance in hosts.items())]


def _used(prices: Prices, now: dt.datetime, name: str, instance: HostInstance) -> CloudInstance:
    hours = (now - dt.datetime.fromisoformat(instance.launched)).total_seconds() / 3600
    # The table has neither the surcharge of dedicated tenancy nor the changing spot prices.
    listed = instance.tenancy == "default" and not instance.spot
    hour = host_hour(prices, instance.region, instance.type, instance.disk_gb) if listed else None
    return CloudInstance(
        **{field: getattr(instance, field) for field in LaunchedInstance.__struct_fields__},
        host=name,
        hours=max(hours, 0.0),
        usd_per_hour=hour,
        usd=None if hour is None else hour * max(hours, 0.0),
        prices_of=prices.date,
    )
