"""What instances cost and how long they must live."""

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts import ec2_price
from loadlab.hosts.ec2_price import HostInstance, Prices
from loadlab.model import CloudInstance
from loadlab.report.words import cost_words

PRICES = Prices(
    date="2026-11-21",
    regions={"us-east-1": {"big": 1.0, "small": 0.25}},
    volume_gb_month=0.073,
    address_hour=0.005,
    dedicated_region_hour=2.0,
)
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
FOUND = HostInstance(
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
    assert ec2_price.needed_s(3600) == pytest.approx(5760 + 1200)
    assert ec2_price.needed_s(0) == 0


def test_cost_is_hours_times_price() -> None:
    one = used()
    assert one.hours == pytest.approx(1.5)
    assert one.usd_per_hour == pytest.approx(1.015)
    assert one.usd == pytest.approx(1.5225)
    assert cost_words.sentence([one, one]) == (
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
    assert cost_words.sentence([one]) == (
        "1 instance for 1.50 h together: the price is unknown, as files/aws_prices.yml does not "
        f"have {kind}."
    )
    together = cost_words.sentence([used(), one])
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


def test_a_budget_shortens_the_lifetime() -> None:
    assert ec2_price.lifetime_s(4, 0, 0.5) == ec2_price.lifetime_s(4, 100, 0.5) == 4 * 3600
    assert ec2_price.lifetime_s(4, 1, 0.5) == 2 * 3600
    # Nothing is to be made, or its price is not known.
    assert ec2_price.lifetime_s(4, 1, 0) == ec2_price.lifetime_s(4, 1, None) == 4 * 3600


@pytest.mark.parametrize(
    ("budget", "price", "dedicated", "words"),
    [
        (5, None, False, ["5 USD cannot be kept", "aws_prices.yml lacks this region", "source"]),
        (5, 2.5, True, ["what dedicated tenancy adds", "-e aws_hosts_max_lifetime=<hours>"]),
        (0.1, 0.8, False, ["0.1 USD pay for 8 min at 0.80 USD an hour", "Give at least 0.20"]),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(
    budget: float, price: float | None, dedicated: bool, words: list[str]
) -> None:
    message = ec2_price.budget_refusal(budget, price, dedicated, "source")
    assert message.startswith("aws_hosts_budget_usd: ")
    for word in words:
        assert word in message


def test_a_budget_that_can_be_kept_is_not_refused() -> None:
    assert ec2_price.budget_refusal(5, 0.8, False, "source") == ""
    assert ec2_price.budget_refusal(0, None, True, "source") == ""


def test_what_goes_on_costing_is_told() -> None:
    assert "(about 0.73 USD an hour)" in ec2_price.going_on(0.728)
    assert "(at an unknown price)" in ec2_price.going_on(None)
