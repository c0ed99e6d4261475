"""A run with a sweep, a search and scaled rates, measured by a server of known capacity, from its
plan to summary.json."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from loadlab.model import (
    Confirmation,
    ErrorCounts,
    Facts,
    Purpose,
    Reason,
    Repetition,
    Result,
    Sample,
    SearchSummary,
    Summary,
    SweepBest,
    SweepStop,
)
from loadlab.plan import records, schedule
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import Plan
from loadlab.plan.schedule import NextMeasurement
from loadlab.report import words
from loadlab.report.sections import sweeps_searches_section
from loadlab.results.summaries import summarize
from loadlab.run import documents
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.plan.modes.probing import WAITS
from tests.unit.report import blocks

CAPACITY = 1240.0
FULL_AT = 8  # connections from which the server's CPU is full
VOID = builders.void("steal")
AGENTS: dict[str, Any] = {"endpoint": "agents", "slo": "p99_ms=100,errors=0"}


def measured(item: NextMeasurement, number: int) -> Result:
    """The item's result as that server gives it; ``number``: how many came before."""
    load = item.cell.load
    most = CAPACITY * min(1.0, load.connections / FULL_AT)
    rate = load.rate or most
    telemetry = present(builders.result().telemetry)
    busy = 0.95 if most == CAPACITY else 0.5
    return builders.result_of(
        item,
        repetition=item.repetition,
        validity=builders.valid(),
        goodput=min(rate, most),
        started=1e9 + number,
        finished=1e9 + number + 1,
        block=item.block,
        response_time=replace(WAITS, p99_us=9000.0 if rate <= most else 312_000.0),
        latency_basis="sent" if load.mode == "closed" else "scheduled",
        telemetry=replace(telemetry, server=replace(telemetry.server, cpu_busy=busy)),
        unsent=None if load.mode == "closed" else 0,
        scheduled=None if load.mode == "closed" else 5000,
        errors=ErrorCounts(**dict.fromkeys(ErrorCounts.__struct_fields__, 0)),
        responses=5000,
        ok=round(5000 * min(1.0, most / rate)),
    )


def run_of(run_dir: Path, plan: Plan, steps: int = 1000, void: int = -1) -> Path:
    """The folder of a run with as many measurements as it asks for, up to ``steps``.

    ``void``: number of the measurement that is void, from 0.
    """
    builders.write_plan(run_dir, plan)
    for number in range(steps):
        item = schedule.next_item(plan, records.load(run_dir), {}, None, 0)
        if item is None:
            break
        found = measured(item, number)
        builders.store(run_dir, replace(found, validity=VOID) if number == void else found)
    return run_dir


def summed(run_dir: Path) -> Summary:
    found = summarize.summary(run_dir)
    documents.encode(found)
    return found


def change(path: Path, **changes: Any) -> None:
    documents.write(path, documents.encode(replace(documents.read(path, Result), **changes)))


def paths(run_dir: Path, purpose: Purpose, rate: float | None) -> list[Path]:
    """The result.json of each repetition of this purpose at this rate."""
    found = {path: documents.read(path, Result) for path in run_dir.glob("cells/*/*/result.json")}
    return [
        path for path, one in found.items() if (one.purpose, one.cell.load.rate) == (purpose, rate)
    ]


def told(found: SearchSummary) -> str:
    return ", ".join(map(words.reason, found.reasons))


def test_search_summary_has_trace_and_confirmed_rate(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", builders.plan(repetitions=3, **AGENTS))
    (found,) = summed(run_dir).searches
    probes = [row for row in found.trace if row.purpose == "probe"]
    first = [(row.rate, row.met) for row in probes[:4]]
    assert first == [(1000, True), (2000, False), (2000, False), (1410, False)]
    (reason,) = probes[1].reasons
    assert (reason.code, reason.value, reason.limit) == ("slo_latency", 312_000, 100_000)
    assert words.reason(reason) == "p99 312 ms is above 100 ms"
    assert [row.rate for row in found.trace[-3:]] == [1240] * 3
    assert (found.highest_rate, found.confirmed) == (1240, Confirmation(of=3, met=3))
    assert found.cell_id == found.trace[-1].cell_id
    assert found.reasons == [Reason(code="rate_missed_slo", value=1300)]
    assert told(found) == "1,300 requests/s does not meet it"


def test_a_search_that_is_unfinished(tmp_path: Path) -> None:
    (found,) = summed(run_of(tmp_path / "r", builders.plan(**AGENTS), steps=3)).searches
    assert (found.highest_rate, found.confirmed, found.cell_id) == (None, None, None)
    assert told(found) == "the search was not ended: 2,000 requests/s is still to be probed"


def test_a_void_probe_is_repeated(tmp_path: Path) -> None:
    # The first is the closed loop or the search itself, as the seed has it.
    (found,) = summed(run_of(tmp_path / "r", builders.plan(**AGENTS), void=3)).searches
    assert found.highest_rate == 1240
    assert [row.met for row in found.trace].count(None) == 1


def test_a_rate_that_is_not_confirmed_gives_way(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", builders.plan(**AGENTS))
    (path,) = paths(run_dir, "measure", 1240)
    change(path, response_time=replace(WAITS, p99_us=100_001.0))
    (once,) = summed(run_dir).searches
    assert (once.highest_rate, once.confirmed) == (1240, Confirmation(of=1, met=0, missed=1))
    builders.store(run_dir, replace(documents.read(path, Result), repetition=2))
    (found,) = summed(run_dir).searches
    assert (found.highest_rate, found.confirmed) == (1180, Confirmation(of=1, met=0))
    assert told(found) == "1,240 requests/s met it at first and was not confirmed"
    # Nobody measured the lower rate yet, so nothing says that it is held.
    (headline,) = sweeps_searches_section.headlines(summed(run_dir), {})
    assert headline.text.endswith(
        "whether it holds 1,180 requests/s with p99 up to 100 ms and no errors is open; 0 of 1 "
        "confirm it, 1,240 requests/s met it at first and was not confirmed."
    )


def test_a_rate_whose_probes_failed_is_not_found(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", builders.plan(**AGENTS))
    for path in [*paths(run_dir, "probe", 1240), *paths(run_dir, "measure", 1240)]:
        change(path, error="broken", validity=VOID)
    (found,) = summed(run_dir).searches
    assert found.highest_rate is None
    failed = [row for row in found.trace if row.reasons[0].code == "failed"]
    assert failed
    assert all(row.reasons == [Reason(code="failed", value="broken")] for row in failed)
    assert all((row.met, row.p99_us, row.errors) == (None, None, None) for row in failed)


def test_a_search_ends_at_a_withheld_rate_without_a_word_of_void(tmp_path: Path) -> None:
    whole = summed(run_of(tmp_path / "r", builders.plan(**AGENTS)))
    facts: Facts = {"percentile": "p99", "requests": 5000}
    withheld = Reason(code="slo_withheld", value=312_000, limit=100_000, facts=facts)
    reasons = [Reason(code="rate_undecided", value=620), withheld]
    search = replace(whole.searches[0], highest_rate=None, confirmed=None, reasons=reasons)
    (headline,) = sweeps_searches_section.headlines(replace(whole, searches=[search]), {})
    assert headline.text.endswith(
        "was found: 620 requests/s could not be judged, p99 312 ms may be the generator's own, and "
        "is above 100 ms."
    )


SWEEP: dict[str, Any] = {"endpoint": "hello", "generator": "wrk"}


def test_sweep_summary_has_levels_best_and_why_it_stopped(tmp_path: Path) -> None:
    plan = builders.plan(repetitions=3, connections="1,2,4,8,16,32", **SWEEP)
    (found,) = summed(run_of(tmp_path / "r", plan)).sweeps
    assert [level.value for level in found.levels] == [1, 2, 4, 8]
    assert found.unmeasured == [16, 32]
    full = Reason(code="server_cpu_full", value=0.95, limit=0.9)
    assert found.stopped == SweepStop(at=8, reason=full)
    assert words.reason(full) == "the server's CPU was 95 % busy, full from 90 %"
    assert found.best == SweepBest(value=8, cell_id=found.levels[-1].cell_id)
    goodput = CAPACITY / 8
    assert found.levels[0].goodput == Sample(n=3, median=goodput, low=goodput, high=goodput)
    assert len(found.cells) == 6


@pytest.mark.parametrize(
    ("connections", "top", "is_load"),
    [("1,2,4", 4, True), ("1,2,4,8,16,32", 8, False), ("2", 2, True)],
)
def test_a_ceiling_is_the_loads_where_twice_its_connections_answer_more(
    tmp_path: Path, connections: str, top: int, is_load: bool
) -> None:
    options = {**SWEEP, "connections": connections, "cross_check": True}
    found = summed(run_of(tmp_path / "r", builders.plan(repetitions=2, **options)))
    (check,) = (cell for cell in found.cells if cell.purpose == "cross_check")
    (base,) = (cell for cell in found.cells if cell.cell_id == check.base)
    assert (base.cell.load.connections, check.cell.load.connections) == (top, 2 * top)
    assert [rep.block for rep in check.repetitions] == [2]
    limit = present(base.limit)
    assert (limit.limit.code == "connections") is is_load
    (load,) = (reason for reason in (limit.limit, *limit.ruled_out) if reason.code == "connections")
    assert load.value == (1.0 if is_load else 0.0)


@pytest.mark.parametrize(("connections", "code"), [(4, "load_missed_slo"), (8, "rate_missed_slo")])
def test_a_search_is_bounded_by_its_load_where_twice_its_connections_meet_more(
    tmp_path: Path, connections: int, code: str
) -> None:
    plan = builders.plan(connections=connections, cross_check=True, **AGENTS)
    run = summed(run_of(tmp_path / "r", plan))
    (found,) = run.searches
    (reason,) = found.reasons
    (check,) = (cell for cell in run.cells if cell.purpose == "cross_check")
    assert check.base == found.cell_id
    assert reason.code == code
    if code == "load_missed_slo":
        assert told(found) == (
            "621 requests/s does not meet it, but 652 does with twice the connections: the load is "
            "the limit"
        )


def test_the_levels_of_a_sweep_tell_a_lower_bound_as_one(tmp_path: Path) -> None:
    plan = builders.plan(endpoint="hello", rate="100,200", connections=1)
    whole = summed(run_of(tmp_path / "r", plan))
    for cell in whole.cells:
        if cell.cell.load.rate == 200:
            cell.statistics.latency_us.at_least.append("p99")
    (levels,) = blocks.tables("Each level", *sweeps_searches_section.sections(whole, {}))
    assert [row.cells[4].text for row in levels.rows] == ["1.84", "≥ 1.84"]


def test_a_sweep_over_rates_that_never_stops(tmp_path: Path) -> None:
    plan = builders.plan(endpoint="hello", rate="100,200", connections=1)
    (found,) = summed(run_of(tmp_path / "r", plan)).sweeps
    assert (found.by, found.stopped, found.unmeasured) == ("rate", None, [])


def scaled(plan: Plan) -> Plan:
    """The plan's cell at 0.8 of the saturations of two cells, and once more with 4 connections."""
    (only,) = [one for one in plan.experiments if one.items[0].purpose == "measure"]
    item = only.items[0]

    def at(name: str, purpose: Purpose, **load: Any) -> Any:
        made = replace(item.cell, load=replace(item.cell.load, **load))
        return replace(item, cell_id=name, purpose=purpose, cell=made)

    closed: dict[str, Any] = {"generator": "wrk", "mode": "closed", "rate": None}
    saturations = {"few": "few-saturation", "many": "many-saturation"}
    rule: dict[str, Any] = {"fraction": 0.8, "saturations": saturations, "whole": True}
    experiments = [
        Fixed(item=at("few-saturation", "saturation", connections=4, **closed)),
        Fixed(item=at("many-saturation", "saturation", **closed)),
        Scaled(item=at("few", "measure", connections=4, rate=None), **rule),
        Scaled(item=at("many", "measure", rate=None), **rule),
    ]
    return replace(plan, experiments=experiments)


def test_scaled_rate_is_the_fraction_of_the_least_saturation(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", scaled(builders.plan(endpoint="agents")))
    (found,) = summed(run_dir).rates
    assert (found.fraction, found.rate, found.cells) == (0.8, 500, ["few", "many"])
    goodputs = [(one.cell, one.goodput) for one in found.of]
    assert goodputs == [("few", CAPACITY / 2), ("many", CAPACITY)]


def test_a_run_without_experiments_of_several_cells(tmp_path: Path) -> None:
    found = summed(run_of(tmp_path / "r", builders.plan(endpoint="hello")))
    assert (found.sweeps, found.searches, found.rates) == ([], [], [])


def test_every_repetition_of_a_summary_is_of_its_result(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", builders.plan(endpoint="hello"))
    kept = {path.parent.parent.name: path for path in run_dir.glob("cells/*/rep-1/result.json")}
    for cell in summed(run_dir).cells:
        result = documents.read(kept[cell.cell_id], Result)
        (rep,) = cell.repetitions
        same = set(Repetition.__struct_fields__) - {"telemetry", "response_time"}
        assert all(asdict(rep)[name] == asdict(result)[name] for name in same)
