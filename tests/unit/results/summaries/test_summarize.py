from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.model import Latency, OwnPart, Reason, Result
from loadlab.results.exports import openmetrics
from loadlab.results.repetitions import derive_result, response_time
from loadlab.results.summaries import summarize
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import present

FIXTURES = builders.ROOT / "tests" / "fixtures"
OHA = "aiohttp-oha-400rps"
VOID = builders.void("steal")


@pytest.fixture(scope="module")
def real() -> dict[str, Result]:
    thresholds = builders.thresholds(steal_max=1.0, generator_cpu_seconds_max=0.25, late_max=0.02)
    return {
        name: derive_result.build(FIXTURES / f"rep-{name}", thresholds, None)
        for name in ("oha", "wrk", "python")
    }


NOTHING: dict[str, Any] = dict.fromkeys(histograms.SUMMARY_KEYS)


def of_values(base: Result, number: int, values: list[int], **changes: Any) -> Result:
    encoded = response_time.encoded(histograms.from_values(np.array(values)))
    return replace(base, repetition=number, histogram=encoded, **{"censored": None, **changes})


def test_repetitions_merge_by_adding_histograms(real: dict[str, Result]) -> None:
    found = summarize.merge([
        of_values(real["oha"], 1, [5000] * 10, goodput=100.0),
        of_values(real["oha"], 2, [1000] * 990, goodput=300.0),
        of_values(real["oha"], 3, [9_000_000] * 500, goodput=900.0, validity=VOID),
    ])  # fmt: skip
    assert (found.n, found.n_void) == (2, 1)
    goodput = present(found.goodput)
    assert (goodput.min, goodput.median, goodput.max) == (100, 200, 300)
    assert found.requests == 2 * (real["oha"].requests or 0)
    # Of 1000 values 990 are fast: the p99 of neither repetition, nor a mean of both.
    assert found.latency_us.p99 == pytest.approx(1000, rel=1e-3)
    interval = found.latency_interval_us
    assert interval.p99.low is interval.p99.high is None
    assert interval.p99.reason == Reason(code="few_valid_repetitions", value=2, limit=3)
    assert found.latency_us.p99_9 is interval.p99_9.low is interval.p99_9.high is None
    few = Reason(code="few_answers", value=1000, limit=10_000, facts={"percentile": "p99_9"})
    assert interval.p99_9.reason == few
    assert found.percentile_curve[-1] == [100.0, found.latency_us.max]


def test_requests_without_an_answer_rank_behind_all_answers_of_all(real: dict[str, Result]) -> None:
    waits = response_time.encoded(histograms.from_values(np.array([300_000] * 30)))
    found = summarize.merge([
        of_values(real["oha"], 1, [1000] * 970, censored=waits),
        of_values(real["oha"], 2, [2000] * 1000),
    ]).latency_us  # fmt: skip
    assert [found.p50, found.p95] == pytest.approx([2000, 2000], rel=1e-3)
    assert found.p99 == pytest.approx(300_000, rel=1e-3)
    assert (found.censored, found.at_least) == (30, ["p99", "max"])


def test_percentile_withheld_from_one_is_withheld_from_all(real: dict[str, Result]) -> None:
    known = present(real["oha"].latency_us)
    withheld = replace(known, p99_9=None, p99_99=None)
    several = [
        of_values(real["oha"], 1, [1000] * 20_000, latency_us=withheld),
        of_values(real["oha"], 2, [2000] * 20_000, latency_us=replace(known, p99_9=1.0)),
    ]
    assert summarize.merge(several[1:]).latency_us.p99_9 == pytest.approx(2000, rel=1e-3)
    assert summarize.merge(several).latency_us.p99_9 is None


def test_a_percentile_of_one_repetition_is_the_lower_bound_there(real: dict[str, Result]) -> None:
    """The other one withholds it, and has so many answers that theirs together would be exact."""
    own = OwnPart(**dict.fromkeys(histograms.PERCENTILES, 0.0))
    latency = replace(present(real["oha"].latency_us), p99_9=300_000.0)
    many, few = [1000] * 30_000, [1000] * 20_000
    waits = response_time.encoded(histograms.from_values(np.array([300_000] * 30)))
    several = [
        of_values(real["oha"], 1, many, latency_us=replace(latency, p99_9=None), own_us=own),
        of_values(real["oha"], 2, few, latency_us=latency, own_us=own, censored=waits),
    ]
    found = summarize.merge([replace(own, ideal=own.histogram) for own in several]).latency_us
    assert found.p99_9 == pytest.approx(300_000, rel=1e-3)
    assert found.at_least == ["p99_9", "max"]


def test_statistics_without_a_valid_repetition_are_null(real: dict[str, Result]) -> None:
    found = summarize.merge([replace(real["oha"], validity=VOID)])
    assert (found.n, found.n_void, found.requests) == (0, 1, None)
    assert (found.goodput, found.errors, found.latency_basis) == (None, None, None)
    assert found.latency_us == Latency(**NOTHING)


def test_a_closed_loop_has_no_unsent_to_sum(real: dict[str, Result]) -> None:
    found = summarize.merge([real["wrk"], replace(real["wrk"], repetition=2)])
    assert found.unsent is found.scheduled is None
    assert found.responses == 2 * (real["wrk"].responses or 0)


def test_results_of_two_cells_or_latency_bases_do_not_merge(real: dict[str, Result]) -> None:
    with pytest.raises(ResultError, match="2 cells"):
        summarize.merge([real["oha"], real["wrk"]])
    with pytest.raises(ResultError, match="scheduled and sent"):
        summarize.merge([real["oha"], replace(real["oha"], repetition=2, latency_basis="sent")])


@pytest.fixture
def run_dir(tmp_path: Path, real: dict[str, Result]) -> Path:
    nothing = dict.fromkeys(("requests", "telemetry", "histogram", "errors", "latency_us"))
    failed = replace(real["oha"], repetition=11, validity=VOID, error="it broke", **nothing)
    results = real["wrk"], failed, replace(real["oha"], repetition=2), real["oha"]
    return builders.store(tmp_path / "20260101-aiohttp", *results)


def test_a_summary_is_rebuilt_byte_for_byte(run_dir: Path) -> None:
    found = summarize.summary(run_dir)
    assert documents.encode(summarize.summary(run_dir)) == documents.encode(found)
    assert found.run_id == "20260101-aiohttp"
    assert [cell.cell_id for cell in found.cells] == [OHA, "aiohttp-wrk-closed"]
    oha = found.cells[0]
    assert [rep.repetition for rep in oha.repetitions] == [1, 2, 11]
    assert (oha.statistics.n, oha.statistics.n_void) == (2, 1)
    assert oha.repetitions[2].error == "it broke"
    first = oha.repetitions[0]
    assert present(first.telemetry).server.per_second is None
    assert present(first.response_time).histogram is None


def test_a_summary_by_way_of_the_latest_link_is_the_same(run_dir: Path) -> None:
    link = run_dir.parent / "latest"
    link.symlink_to(run_dir.name)
    assert summarize.summary(link) == summarize.summary(run_dir)


def test_a_result_in_anothers_place_is_refused(run_dir: Path, real: dict[str, Result]) -> None:
    path = run_dir / "cells" / OHA / "rep-2" / "result.json"
    documents.write(path, documents.encode(real["oha"]))
    with pytest.raises(ResultError, match=r"rep-2/result\.json is of .* repetition 1"):
        summarize.summary(run_dir)
    made = real["oha"].cell
    other = replace(made, load=replace(made.load, connections=9))
    documents.write(path, documents.encode(replace(real["oha"], repetition=2, cell=other)))
    with pytest.raises(ResultError, match="another cell"):
        summarize.summary(run_dir)


def test_python_clients_merge(real: dict[str, Result], tmp_path: Path) -> None:
    first = real["python"]
    used = present(first.client)
    more = replace(used, seconds=used.seconds + 2, failures={"EADDRNOTAVAIL": 5})
    second = replace(first, repetition=2, client=more)
    void = replace(first, repetition=3, validity=VOID)
    found = summarize.summary(builders.store(tmp_path / "r", first, second, void))
    documents.encode(found)
    client = present(found.cells[0].statistics.client)
    assert client.seconds.median == used.seconds + 1
    assert client.cpu_s.max == used.cpu_s.user + used.cpu_s.system
    assert client.max_rss_bytes.min == used.max_rss_bytes
    assert client.failures == {"EADDRNOTAVAIL": 5, "EMFILE": 985}
    assert summarize.merge([real["oha"]]).client is None
    text = openmetrics.text(found)
    assert "lab_client_failures{" in text
    assert 'cause="EMFILE"' in text
    assert "nan" not in text.lower()
    assert "None" not in text


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """Five repetitions each of a cell, its A/A control, and one with half as much goodput."""
    return builders.compared_run(tmp_path / "results" / "r")


def test_a_summary_compares_what_the_plan_says(compared: Path) -> None:
    found = summarize.summary(compared)
    documents.encode(found)
    (one,) = found.comparisons
    assert [row.conclusion for row in one.rows] == ["lower", "no difference", "no difference"]
    names = ["goodput", "p50", "p99", "cpu_interrupts"]
    assert [row.metric for row in found.noise_floor] == names
    assert found.cells[-1].base == "stock"
    (compared / "plan.json").unlink()
    found = summarize.summary(compared)
    assert (found.comparisons, found.noise_floor) == ([], [])


def test_a_void_head_is_not_compared(compared: Path) -> None:
    for path in compared.glob("cells/production/*/result.json"):
        void = replace(documents.read(path, Result), validity=VOID)
        documents.write(path, documents.encode(void))
    found = summarize.summary(compared)
    reason = Reason(code="side_not_valid", facts={"side": "head", "void": ["steal"]})
    assert [row.reason for row in found.comparisons[0].rows] == [reason] * 3
    assert "lab_difference_ratio{" not in openmetrics.text(found)


def test_errors_are_summed_by_class(real: dict[str, Result]) -> None:
    errors = present(real["oha"].errors)
    several = [replace(real["oha"], repetition=n, errors=replace(errors, body=n)) for n in (1, 2)]
    found = present(summarize.merge(several).errors)
    assert (found.body, found.timeout) == (3, 2 * errors.timeout)
