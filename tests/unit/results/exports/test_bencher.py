from pathlib import Path

from msgspec.structs import replace

from loadlab.results.exports import bencher
from loadlab.results.summaries import summarize
from tests.unit import builders
from tests.unit.builders import present


def test_metrics_have_bencher_s_names_units_and_the_lab_s_intervals(tmp_path: Path) -> None:
    summary = summarize.summary(builders.compared_run(tmp_path / "results" / "r"))
    cells = {cell.cell_id: cell for cell in summary.cells}
    document = bencher.document(summary)
    # The A/A control is no benchmark of its own.
    assert document.keys() == {"production", "stock"}
    measures = document["stock"]

    goodputs = sorted(present(rep.goodput) for rep in cells["stock"].repetitions)
    value, low, high = goodputs[2], goodputs[0], goodputs[4]
    assert measures["throughput"] == {"value": value, "lower_value": low, "upper_value": high}
    wait = present(cells["stock"].repetitions[0].response_time).mean_us
    assert measures["response-time"]["value"] == 1000 * wait
    failed = sorted(
        (present(rep.scheduled) - present(rep.ok)) / present(rep.scheduled)
        for rep in cells["stock"].repetitions
    )
    assert measures["errors"]["value"] == failed[2]


def test_a_percentile_is_that_of_all_requests_in_ns() -> None:
    measures = bencher.document(builders.summary())[builders.NAME]
    us = {"value": 457, "lower_value": 452, "upper_value": 462}
    assert measures["latency"] == {name: 1000 * part for name, part in us.items()}
    assert measures["latency-p99"]["upper_value"] == 2_101_000


def test_what_has_no_value_is_left_out() -> None:
    one = builders.cell_summary("one", [builders.repetition()])
    latency = replace(one.statistics.latency_us, p50=None, at_least=["p99"])
    one = replace(one, statistics=replace(one.statistics, latency_us=latency))
    lost = builders.cell_summary("void", [builders.repetition(validity=builders.void("steal"))])
    document = bencher.document(builders.summary_of(one, lost))
    assert document.keys() == {"one"}
    assert not {"latency", "latency-p99", "cpu", "energy"} & document["one"].keys()
    # A single repetition has no interval.
    assert document["one"]["throughput"].keys() == {"value"}


def test_cost_is_in_nanoseconds_and_bytes() -> None:
    used = builders.processes()
    rep = builders.with_services(
        builders.repetition(reverse_proxy_requests=1000), reverse_proxy=used, application=used
    )
    cell = builders.cell_summary("one", [rep])
    measures = bencher.document(builders.summary_of(cell))["one"]
    cost = cell.cost
    assert measures["cpu"]["value"] == 1000 * present(present(cost.sample("cpu")).median)
    assert measures["cpu-application"]["value"] < measures["cpu"]["value"]
    assert measures["memory"]["value"] == present(cost.sample("memory")).median
