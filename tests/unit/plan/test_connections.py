"""Connections that a load opens on demand: what is planned, and beside it."""

from loadlab.plan import cells
from loadlab.plan.load_options import connections
from loadlab.plan.plan_document import Plan, items
from tests.unit import builders


def planned(value: str, **options: object) -> Plan:
    given = {"framework": "aiohttp", "endpoint": "index", "rate": 200, "curve": True}
    return builders.plan(**{**given, "connections": value, **options})


def test_open_has_a_limit_and_the_loads_at_a_rate_open_up_to_it() -> None:
    by_purpose = {item.purpose: item.cell.load for item in items(planned("open:500").experiments)}
    assert {
        purpose: (load.connections, load.on_demand)
        for purpose, load in by_purpose.items()
        if purpose != "closed_loop"
    } == {"measure": (500, True), "curve": (500, True)}
    # It keeps a number, for it asks as fast as they answer.
    loop = by_purpose["closed_loop"]
    assert (loop.connections, loop.on_demand) == (64, None)
    (measured, *_) = items(planned("open").experiments)
    assert measured.cell.load.connections == connections.LIMIT
    assert "-upto10000-" in measured.cell_id


def test_beside_open_connections_there_are_the_usual_ones() -> None:
    assert builders.SPECS["connections"].default == [cells.CLOSED_LOOP_CONNECTIONS]
    plan = planned("open:500")
    assert (plan.calibrate.connections, plan.connections) == (64, 500)
    assert planned("open:8").calibrate.connections == 8


def test_a_load_that_opens_on_demand_has_no_cross_check() -> None:
    for options in ({}, {"slo": {"p99_ms": 50}, "curve": None}):
        made = planned("open", cross_check=True, **options)
        assert "cross_check" not in {item.purpose for item in items(made.experiments)}
