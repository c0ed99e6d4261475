"""What instances cost and how long they must live."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.core.model import CloudInstance
from loadlab.hosts import ec2_price
from loadlab.hosts.ec2_price import Found, Prices
from loadlab.report.words import cost

PRICES = Prices(
    date="2026-11-21",
    regions={"us-east-1": {"big": 1.0, "small": 0.25}},
    volume_gb_month=0.073,
    address_hour=0.005,
    dedicated_region_hour=2.0,
)
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
FOUND = Found(
    instance_id="i-1",
    type="big",
    image="ami-1",
    region="us-east-1",
    zone="us-east-1a",
    tenancy="default",
    spot=False,
    launched="2026-11-22T10:30:00+00:00",
    disk_gb=100,
)


def used(**changes: Any) -> CloudInstance:
    (one,) = ec2_price.used(PRICES, NOW, {"server": replace(FOUND, **changes)}, [])
    return one


def test_estimate_counts_hosts_disks_and_addresses() -> None:
    # Of each GB a month's 730th.
    estimate = ec2_price.estimate
    assert estimate(PRICES, "us-east-1", ["big", "small"], 100, False) == pytest.approx(1.28)
    assert estimate(PRICES, "us-east-1", ["big"], 0, True) == pytest.approx(3.005)
    assert estimate(PRICES, "us-east-1", ["big", "other"], 1, False) is None
    assert estimate(PRICES, "eu-west-1", ["big"], 1, False) is None


def test_lifetime_has_room_beside_the_load_and_none_without() -> None:
    assert ec2_price.needed_s(3600) == pytest.approx(3960 + 1200)
    assert ec2_price.needed_s(0) == 0


def test_cost_is_hours_times_price() -> None:
    one = used()
    assert one.hours == pytest.approx(1.5)
    assert one.usd_per_hour == pytest.approx(1.015)
    assert one.usd == pytest.approx(1.5225)
    assert cost.sentence([one, one]) == (
        "2 instances for 3.00 h together: about 3.04 USD up to here, by the list prices of "
        "2026-11-21, without traffic. Instances cost until they are removed."
    )


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"type": "huge"}, "huge"),
        ({"region": "eu-west-1"}, "big"),
        ({"spot": True}, "big as spot"),
        ({"tenancy": "dedicated"}, "big with dedicated tenancy"),
    ],
)
def test_cost_without_a_price_says_so(changes: dict[str, Any], kind: str) -> None:
    one = used(**changes)
    assert (one.usd_per_hour, one.usd) == (None, None)
    assert cost.sentence([one]) == (
        "1 instance for 1.50 h together: the price is unknown, as files/aws_prices.yml does not "
        f"have {kind}."
    )
    together = cost.sentence([used(), one])
    assert "about 1.52 USD up to here" in together
    assert together.endswith(f"without traffic, and the unknown price of {kind}.")


def test_cost_of_instances_that_ended_before_the_run_went_on_is_kept() -> None:
    gone = replace(used(), instance_id="i-0")
    earlier = replace(used(), hours=0.5)
    found = ec2_price.used(PRICES, NOW, {"server": FOUND}, [gone, earlier])
    assert [(one.instance_id, one.hours) for one in found] == [("i-0", 1.5), ("i-1", 1.5)]


def test_a_million_requests_cost_their_share_of_the_hour() -> None:
    # 1,000 requests/s are 3.6 million an hour.
    assert ec2_price.per_million(0.36, 1000) == pytest.approx(0.1)
