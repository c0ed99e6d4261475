from __future__ import annotations

import pytest

from loadlab.model import Sample
from loadlab.report.words import quantities
from loadlab.report.words.quantities import levels, quantity


def test_the_level_of_few_repetitions_is_told() -> None:
    told = levels()
    for text in ("3, 4 or 5 repetitions", "in 75, 88 or 94 %", "of more in 95 %"):
        assert text in told


@pytest.mark.parametrize(
    ("metric", "number", "shown"),
    [
        ("latency_us.mean", 65980, "66.0 ms"),
        ("failed_fraction", 0.8528, "85 %"),
        ("client.max_rss_bytes", 54992896, "52.4 MiB"),
        ("cpu_us_per_request", 95.29, "95.3 µs"),
        ("goodput", 1495, "1,495"),
        (None, 0.9251, "0.925"),
        (None, 4, "4.00"),
        ("errors", 0, "0"),
    ],
)
def test_quantities_are_written_with_their_units(
    metric: str | None, number: float, shown: str
) -> None:
    assert quantity(metric, number) == shown


def test_a_part_of_the_cost_is_in_its_unit_with_its_interval() -> None:
    assert quantities.median("cpu", Sample(n=3, median=95.3, low=86.6, high=108.2)) == (
        "95.3 (86.6 to 108)"
    )
    assert (
        quantities.median("memory", Sample(n=1, median=82.4 * 2**20, low=None, high=None)) == "82.4"
    )
    assert quantities.median("energy", Sample(n=1, median=0.0123, low=None, high=None)) == "12.3"
    assert quantities.median("cpu", None) == "-"
