"""The host pair that each experiment is measured on."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Item
from loadlab.plan import placement
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import PlannedExperiment
from tests.unit import builders


def item(name: str, stack: str, seconds: float = 10) -> Item:
    return builders.item(cell_id=name, stack=stack, expected_s=seconds)


def fixed(name: str, stack: str, seconds: float = 10) -> Fixed:
    return Fixed(item=item(name, stack, seconds))


def placed(
    experiments: Sequence[PlannedExperiment],
    together: Sequence[Sequence[str]] = (),
    count: int = 2,
    earlier: dict[str, int] | None = None,
) -> dict[str, int]:
    """Return cell_id -> pair; nothing else of the experiments changes."""
    assigned = placement.assign(experiments, together, 3, count, earlier or {})
    assert [replace(experiment, pair=0) for experiment in assigned] == list(experiments)
    return {item.cell_id: experiment.pair for experiment in assigned for item in experiment.items}


def test_only_pair_measures_every_experiment() -> None:
    assert set(placed([fixed(str(n), str(n)) for n in range(5)], count=1).values()) == {0}


def test_two_pairs_share_the_seconds() -> None:
    pairs = placed([fixed(str(n), str(n), seconds) for n, seconds in enumerate((10, 30, 20, 20))])
    # 30, then 20 and 20, then 10 to either.
    assert pairs == {"1": 0, "2": 1, "3": 1, "0": 0}


def test_compared_cells_share_a_pair() -> None:
    experiments = [fixed(name, name) for name in "abcdef"]
    pairs = placed(experiments, [["a", "b"], ["c", "a"], ["e", "elsewhere"]])
    assert pairs["a"] == pairs["b"] == pairs["c"] != pairs["d"]


def test_a_scaled_rate_shares_the_pair_of_its_saturations() -> None:
    saturations = {"one": "d", "other": "f"}
    scaled = Scaled(item=item("s", "s"), fraction=0.5, saturations=saturations, whole=False)
    pairs = placed([*(fixed(name, name) for name in "abcdef"), scaled])
    assert pairs["s"] == pairs["d"] == pairs["f"] != pairs["a"]


def test_cells_of_one_stack_endpoint_tuning_and_network_share_a_pair() -> None:
    # The closed loop beside a rate, and other rates.
    pairs = placed([fixed("x", "same"), fixed("y", "other", 50), fixed("z", "same")])
    assert pairs["x"] == pairs["z"] != pairs["y"]
    tuned = replace(item("z", "same"), cell=builders.cell(tuning="other"))
    pairs = placed([fixed("x", "same"), Fixed(item=tuned)])
    assert pairs["x"] != pairs["z"]


def test_a_resumed_run_keeps_its_pairs() -> None:
    experiments = [fixed(name, name) for name in "abcd"]
    assert placed(experiments, earlier={"a": 1, "b": 1}) == {"a": 1, "b": 1, "c": 0, "d": 0}
    # Also where what is compared with it was not, as when the run was begun by an older lab.
    assert placed(experiments, [["a", "b"], ["c", "b"]], earlier={"a": 1, "b": 0}) == {
        "a": 1, "b": 0, "c": 1, "d": 0,
    }  # fmt: skip
    # A pair that there is no more.
    assert placed(experiments, count=1, earlier={"a": 1}) == dict.fromkeys("abcd", 0)


@given(st.lists(st.floats(1, 100), min_size=1, max_size=12), st.integers(1, 4))
def test_no_pair_waits_for_more_than_one_cell(seconds: list[float], count: int) -> None:
    pairs = placed([fixed(str(n), str(n), lasts) for n, lasts in enumerate(seconds)], count=count)
    loads = [
        sum(s for n, s in enumerate(seconds) if pairs[str(n)] == pair) for pair in range(count)
    ]
    assert max(loads) - min(loads) <= max(seconds) + 1e-6
    assert sum(loads) == pytest.approx(sum(seconds))
