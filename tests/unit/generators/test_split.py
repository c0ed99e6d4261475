from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from loadlab.generators import split

CLIENTS = st.integers(2, 40)


@given(st.integers(1, 1_000_000), CLIENTS)
def test_whole_numbers_are_split_into_whole_numbers(total: int, clients: int) -> None:
    found = split.split(total, clients)
    assert sum(map(Decimal, map(str, found))) == total
    if total >= clients:
        assert all(type(share) is int and share >= 1 for share in found)
        assert max(found) - min(found) <= 1


@given(st.decimals("0.1", "1000000", places=3), CLIENTS)
def test_a_rate_is_the_sum_of_its_shares(rate: Decimal, clients: int) -> None:
    found = split.split(float(rate), clients)
    assert sum(map(Decimal, map(str, found))) == rate
    assert min(found) > 0
    assert found == sorted(found, reverse=True)


def test_each_client_has_its_share() -> None:
    load = {"rate": 1001, "connections": 5, "mode": "constant"}
    assert split.shares(load, ["a", "b"]) == [
        {"name": "a", "rate": 501, "connections": 3},
        {"name": "b", "rate": 500, "connections": 2},
    ]
    closed = split.shares({**load, "rate": None}, ["a", "b"])
    assert [one["rate"] for one in closed] == [None, None]
    # One alone has all of it, as it was asked for.
    (alone,) = split.shares({**load, "rate": 0.5}, ["a"])
    assert alone == {"name": "a", "rate": 0.5, "connections": 5}
    host = {"cpus": [1], "interface": "eth0", "python": "3.13"}
    assert split.offered(load, ["a"], [host]) == [
        {"name": "a", "rate": 1001, "connections": 5, "cpus": [1], "interface": "eth0"}
    ]


def test_what_can_be_split_is_not_refused() -> None:
    for generator, rate in (("oha", [0.5]), ("wrk2", [3]), ("wrk", [1000]), ("oha", [None])):
        values = {"generator": generator, "rate": rate, "connections": [3], "clients": 3}
        split.refuse(values)
