from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from loadlab.generators.load import split

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
    assert split.shares(1001, 5, ["a", "b"]) == [split.Share("a", 501, 3), split.Share("b", 500, 2)]
    assert [one.rate for one in split.shares(None, 5, ["a", "b"])] == [None, None]
    # One alone has all of it, as it was asked for.
    assert split.shares(0.5, 5, ["a"]) == [split.Share("a", 0.5, 5)]
