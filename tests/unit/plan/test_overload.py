"""The overload of a cell: one load beyond its saturation and back, after its closed loop."""

from loadlab.plan.plan_document import items
from tests.unit import builders


def test_a_cell_has_one_overload_after_its_closed_loop() -> None:
    plan = builders.plan(framework="aiohttp", endpoint="index", overload=True, curve=False)
    own, loop, over = items(plan.experiments)
    assert [item.purpose for item in (own, loop, over)] == ["measure", "closed_loop", "overload"]
    load, arrivals = over.cell.load, builders.present(over.cell.load.arrivals)
    assert (over.base, load.of_saturation, load.rate) == (own.cell_id, [loop.cell_id], None)
    assert (load.duration_s, load.fraction) == (45, (10 * 0.5 + 5 * 1.2 + 5 * 2 + 25 * 0.5) / 45)
    # Of a saturation of 1,000/s.
    mean = 1000 * builders.present(load.fraction)
    parts = [tuple(map(round, part)) for part in arrivals.stages(mean, 45)]
    assert parts == [(0, 10, 500), (10, 15, 1200), (15, 20, 2000), (20, 45, 500)]
