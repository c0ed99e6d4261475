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


@pytest.mark.parametrize(
    ("metric", "value", "with_unit", "terse"),
    [
        ("goodput", 1495.4, "1,495/s", "1,495/s"),
        ("p99", 15_300.0, "15.3 ms", "15.3ms"),
        ("cpu", 95.29, "95.3 µs", "95.3µs"),
        ("memory", 3.5 * 2**30, "3.50 GiB", "3,584MiB"),
        ("energy", 0.0123, "12.3 mJ/request", "12.3mJ"),
        ("switches", 2.5, "2.50 per request", "2.50"),
        ("errors", 0.00001, "< 0.01 %", "0.00001"),
        ("p50", None, "-", "-"),
    ],
)
def test_a_metric_is_written_in_the_unit_of_its_row(
    metric: str, value: float | None, with_unit: str, terse: str
) -> None:
    assert quantities.with_unit(metric, value) == with_unit
    assert quantities.terse(metric, value) == terse


def test_a_metric_without_a_row_is_not_written() -> None:
    with pytest.raises(KeyError, match="goodness"):
        quantities.with_unit("goodness", 1.0)
