from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds.study import study_files
from loadlab.model import CellCost, Sample
from loadlab.plan.plan_document import PlannedComparison
from loadlab.results import metrics
from loadlab.results.comparisons import comparison
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.kinds.study.claimed import profile

LESSONS = sorted((builders.ROOT / "files" / "lessons").glob("*.yml"))


def test_a_metric_is_a_path() -> None:
    load, errors = builders.load(), builders.present(builders.repetition().errors)
    rep = builders.repetition(client=builders.client(EMFILE=3), telemetry=None)
    assert metrics.value(rep, load, "client.failures.EMFILE") == 3
    # What did not happen was counted 0 times.
    assert metrics.value(rep, load, "client.failures.EADDRNOTAVAIL") == 0
    assert metrics.value(rep, load, "telemetry.server.tcp.retransmits") is None
    assert metrics.value(rep, load, "load.rate") == 1000
    with pytest.raises(ResultError, match=r"goodness: a repetition has no 'goodness'"):
        metrics.value(rep, load, "goodness")
    with pytest.raises(ResultError, match="is not a number"):
        metrics.value(rep, load, "latency_basis")
    # At several numbers it ends in their sum; what was not recorded is not measured.
    rep = builders.repetition(errors=replace(errors, connect=2, read=3))
    assert metrics.value(rep, load, "errors") == 5
    assert metrics.value(rep, load, "telemetry.server.processes.reverse_proxy.cpu") is None
    # What was due and never sent had no right answer either.
    late = builders.repetition(scheduled=100, requests=60, ok=30)
    assert metrics.value(late, load, "failed_fraction") == pytest.approx(0.7)
    late = replace(late, scheduled=None)
    assert metrics.value(late, load, "failed_fraction") == pytest.approx(0.5)


def test_requests_under_way_are_answers_a_second_times_their_mean_latency() -> None:
    load = builders.load()
    rep = builders.repetition(rate_achieved=160.0)
    latency = replace(builders.present(rep.latency_us), mean=50_000.0)
    assert metrics.value(replace(rep, latency_us=latency), load, "under_way") == pytest.approx(8)
    unanswered = replace(rep, latency_us=replace(latency, mean=None))
    assert metrics.value(unanswered, load, "under_way") is None
    assert metrics.value(replace(rep, latency_us=None), load, "under_way") is None


def test_a_percentile_that_may_be_the_generators_own_is_not_compared() -> None:
    rep, path = builders.repetition(), "response_time.p99_us"
    latency = builders.present(rep.latency_us)
    withheld = replace(rep, latency_us=replace(latency, p99=None))
    assert metrics.value(rep, builders.load(), path) is not None
    assert metrics.value(withheld, builders.load(), path) is None
    assert metrics.value(withheld, builders.load(), "response_time.p50_us") is not None
    # A server that answers nothing withholds nothing.
    silent = replace(rep, latency_us=replace(latency, p50=None, p99=None))
    assert metrics.value(silent, builders.load(), path) is not None
    cells = [
        builders.cell_summary(name, [replace(withheld, repetition=number) for number in (1, 2, 3)])
        for name in ("base", "head")
    ]
    planned = PlannedComparison(by="tuning", base="base", head="head")
    (compared,) = comparison.build(cells, [planned], []).comparisons
    told = {row.metric: row for row in compared.rows}
    assert (told["p99"].reason.code, told["p99"].base.n) == ("few_repetitions", 0)
    assert told["p50"].base.n == 3


def test_memory_is_proportional_where_all_repetitions_have_it() -> None:
    used = builders.processes(rss_max_bytes=4 << 20)
    both = replace(used, pss_bytes=3 << 20, pss_before_bytes=2 << 20)
    rss, pss = (
        builders.with_services(builders.repetition(), application=application)
        for application in (used, both)
    )
    mixed = metrics.cost(builders.cell_summary("one", [pss, rss]))
    assert builders.present(mixed.sample("memory")).median == 4 << 20
    assert (mixed.memory_is, builders.present(mixed.sample("memory_before")).n) == ("rss", 1)
    found = metrics.cost(builders.cell_summary("one", [pss] * 3))
    assert found.sample("memory") == Sample(n=3, median=3 << 20, low=3 << 20, high=3 << 20)
    assert found.memory_is == "pss"


def test_a_cost_that_was_not_recorded_is_absent() -> None:
    bare = builders.repetition(telemetry=None)
    assert metrics.cost(builders.cell_summary("one", [bare])) == CellCost()


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_metric_of_a_lesson_is_a_path(path: Path) -> None:
    study = builders.present(study_files.find(builders.ROOT, {"lesson": path.stem}, "lesson"))
    spied = builders.repetition(py_spy=profile(), client=builders.client())
    for one in (one for claim in study.claims for one in claim.all):
        for metric in filter(None, (one.metric, one.over)):
            metrics.value(spied, builders.load(), metric)
