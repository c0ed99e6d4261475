import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadlab.model import Summary
from loadlab.results.exports import openmetrics
from loadlab.results.summaries import summarize
from tests.unit import builders
from tests.unit.builders import present


def parse(found: Summary) -> list[Metric]:
    text = openmetrics.text(found)
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def test_cells_have_gauges_in_base_units() -> None:
    found = builders.summary()
    families = {family.name: family for family in parse(found)}
    assert openmetrics.text(found) == openmetrics.text(found)
    summaries = {name for name, family in families.items() if family.type == "summary"}
    assert summaries == {"lab_latency_seconds"}
    assert {family.type for family in families.values()} == {"gauge", "summary"}

    def value(name: str, **labels: str) -> float:
        (sample,) = [
            sample
            for sample in families[name].samples
            if sample.labels["cell"] == builders.NAME and labels.items() <= sample.labels.items()
        ]
        return float(sample.value)

    (cell,) = [one for one in found.cells if one.cell_id == builders.NAME]
    statistics = cell.statistics
    assert value("lab_goodput_requests_per_second") == present(statistics.goodput).median
    assert value("lab_valid_repetitions", rate="1000", mode="constant") == statistics.n
    assert value("lab_void_repetitions") == statistics.n_void
    assert value("lab_unsent_requests") == statistics.unsent
    assert value("lab_errors", **{"class": "timeout"}) == 0
    labels = {"quantile": "0.99", "from": "scheduled"}
    us = present(statistics.latency_us.p99)
    assert value("lab_latency_seconds", **labels) == pytest.approx(us / 1e6)
    mean_us = present(statistics.response_time).mean_us
    assert value("lab_response_time_seconds") == mean_us / 1e6
    # A percentile that the answers do not support has none, nor has a closed loop unsent requests.
    quantiles = {
        one.labels["quantile"]
        for one in families["lab_latency_seconds"].samples
        if one.labels["cell"] == builders.NAME
    }
    assert quantiles == {"0.5", "0.75", "0.9", "0.95", "0.99", "1.0"}
    modes = {one.labels["mode"] for one in families["lab_unsent_requests"].samples}
    assert modes == {"constant"}


def test_a_percentile_of_which_only_a_lower_bound_is_known_is_left_out() -> None:
    cell = builders.cell_summary("one", [builders.repetition()])
    latency = replace(cell.statistics.latency_us, at_least=["p99", "max"])
    cell = replace(cell, statistics=replace(cell.statistics, latency_us=latency))
    samples = [sample for family in parse(builders.summary_of(cell)) for sample in family.samples]
    quantiles = {sample.labels.get("quantile") for sample in samples} - {None}
    assert quantiles == {"0.5", "0.75", "0.9", "0.95"}


def test_void_cells_and_probes_have_no_figures() -> None:
    void = builders.cell_summary("void", [builders.repetition(validity=builders.void("steal"))])
    nothing = dict.fromkeys(("goodput", "rate_achieved", "response_time", "unsent"))
    void = replace(void, statistics=replace(void.statistics, **nothing))
    probe = builders.cell_summary("probe", [builders.repetition()], purpose="closed_loop")
    summary = builders.summary_of(void, probe)
    names = {one.name for family in parse(summary) for one in family.samples}
    assert names == {"lab_valid_repetitions", "lab_void_repetitions"}


def test_comparisons_have_gauges(tmp_path: Path) -> None:
    found = summarize.summary(builders.compared_run(tmp_path / "results" / "r"))
    several = [one for family in parse(found) for one in family.samples]
    samples = {
        (one.name, one.labels.get("metric"), one.labels.get("bound")): one for one in several
    }
    row = found.comparisons[0].rows[0]
    ratio = samples["lab_difference_ratio", "goodput", None]
    assert (ratio.labels["base"], ratio.labels["head"]) == ("stock", "production")
    assert ratio.value == row.difference.value
    assert ratio.value < -0.49
    assert samples["lab_difference_bound_ratio", "goodput", "low"].value == row.difference.low
    assert samples["lab_noise_floor_ratio", "goodput", None].value == row.noise_floor
    cells = {one.labels.get("cell") for one in several} - {None}
    assert cells == {"stock", "production"}


def test_promtool_finds_no_fault(tmp_path: Path) -> None:
    python = builders.repetition(client=builders.client(EMFILE=3))
    batch = builders.cell_summary("batch", [python], builders.cell(load=builders.batch()))
    statistics = summarize.merge([builders.result(client=builders.client(EMFILE=3))])
    found = summarize.summary(builders.compared_run(tmp_path / "r"))
    found = replace(found, cells=[*found.cells, replace(batch, statistics=statistics)])
    text = openmetrics.text(found)
    # Every metric has a value.
    for family in parse(found):
        assert family.samples, family.name
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
