"""Each constant rate measured once more with another generator, and each ceiling with twice the
connections."""

from typing import Any

import pytest

from loadlab.kinds.plan_run import plan
from loadlab.model import Item
from loadlab.plan import schedule
from loadlab.plan.plan_document import Plan, items
from loadlab.run.errors import PlanError
from tests.unit import builders

ONE: dict[str, Any] = {"framework": "aiohttp", "endpoint": "index"}


def planned(*user: str, everywhere: bool = True, clients: int = 1, **options: Any) -> Plan:
    return plan(builders.request(options, user=user, clients=clients, cross_check=everywhere))


def checks(planned_run: Plan) -> list[Item]:
    return [item for item in items(planned_run.experiments) if item.purpose == "cross_check"]


def test_a_cell_at_a_constant_rate_has_one() -> None:
    planned_run = planned(**ONE, rate=250.6, duration=5, warmup=1.5)
    base = items(planned_run.experiments)[0]
    (check,) = checks(planned_run)
    assert check.base == base.cell_id
    assert check.cell_id.endswith("-wrk2-251rps-c64-30s-w2s-cross_check")
    load = check.cell.load
    assert (load.generator, load.rate, load.duration_s, load.warmup_s) == ("wrk2", 251, 30, 2)
    assert check.expected_s == 32
    assert check.input_hashes == base.input_hashes
    assert planned_run.generators == ["metronome", "wrk", "wrk2"]
    without = planned(**ONE, everywhere=False, rate=250.6, duration=5, warmup=1.5)
    assert without.measurements == planned_run.measurements - 1
    assert without.load_seconds == planned_run.load_seconds - 32
    (long,) = checks(planned(**ONE, duration=45))
    assert long.cell.load.duration_s == 45


@pytest.mark.parametrize(
    "options",
    [
        {**ONE, "cross_check": False},
        {**ONE, "generator": "wrk", "cross_check": False},
        {**ONE, "generator": "wrk", "connections": 30_001},
        {**ONE, "generator": "wrk2"},
        {**ONE, "tls": True, "http2": True},
        {**ONE, "rate": "100,200"},
        {**ONE, "arrivals": "poisson"},
        {"framework": "aiohttp", "endpoint": "crud_create"},
        {"lesson": "coordinated_omission"},
    ],
)
def test_other_cells_have_none(options: dict[str, Any]) -> None:
    assert checks(planned(**options)) == []


@pytest.mark.parametrize(
    ("options", "connections"),
    [
        ({"generator": "wrk"}, 128),
        ({"generator": "wrk", "connections": "1,2,4"}, 8),
        ({"slo": "p99_ms=10"}, 128),
    ],
)
def test_a_ceiling_has_one_with_twice_the_connections(
    options: dict[str, Any], connections: int
) -> None:
    planned_run = planned(**ONE, **options, everywhere=False, repetitions=3)
    (check,) = checks(planned_run)
    assert check.cell.load.connections == connections
    without = planned(**ONE, **options, cross_check=False, repetitions=3)
    assert planned_run.measurements == without.measurements + 1


def test_a_study_names_its_connections() -> None:
    cells = items(planned(study="quick", everywhere=False).experiments)
    assert any(item.cell.load.mode == "closed" for item in cells)
    assert not any(item.purpose == "cross_check" for item in cells)


def test_a_rate_below_a_request_a_second_for_each_client_has_none() -> None:
    assert checks(planned(**ONE, rate=0.4)) == []
    assert checks(planned(**ONE, clients=2, rate=1)) == []
    assert len(checks(planned(**ONE, clients=2, rate=2))) == 1


def test_a_study_has_one_of_each_load_that_nothing_disturbs() -> None:
    planned_run = planned(study="objective")
    measured = [item for item in items(planned_run.experiments) if item.purpose == "measure"]
    constant = [item for item in measured if item.cell.load.mode == "constant"]
    assert {item.base for item in checks(planned_run)} <= {item.cell_id for item in constant}
    assert checks(planned(study="certificate")) == []


def test_its_generators_executable_is_used_by_it_alone() -> None:
    assert checks(planned("wrk2_binary", **ONE))
    others: list[dict[str, Any]] = [{"generator": "wrk"}, {"cross_check": False}]
    for options in [*others, {"everywhere": False}]:
        with pytest.raises(PlanError, match="wrk2_binary: it would change nothing"):
            planned("wrk2_binary", **ONE, **options)


def test_it_ends_its_visit_of_the_last_block() -> None:
    options = {**ONE, "endpoint": "index,hello", "repetitions": 3, "tuning": "stock,reno"}
    turns, before = (
        [
            (block, experiment.items[0])
            for block, experiment in schedule.order(planned(everywhere=everywhere, **options), None)
        ]
        for everywhere in (True, False)
    )
    assert [block for block, item in turns if item.purpose == "cross_check"] == [3] * 4
    assert [turn for turn in turns if turn[1].purpose != "cross_check"] == before
    last = [item for block, item in turns if block == 3]
    for tuning in ("stock", "reno"):
        visit = [item.purpose == "cross_check" for item in last if item.cell.tuning == tuning]
        assert visit == sorted(visit)
