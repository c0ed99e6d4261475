"""Sweeps over servers whose throughput stops growing, or whose CPU fills up."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Facts, Reason, Result
from loadlab.plan.modes.levels import Stop, Sweep
from loadlab.plan.modes.stopping import SweepRule
from loadlab.plan.records import CellRecords
from tests.unit import builders
from tests.unit.plan.test_schedule import add

RULE = SweepRule(growth_min=0.1, server_cpu_full=0.9)
DOUBLING = (1, 2, 4, 8, 16, 32, 64, 128)


def sweep_over(levels: Sequence[float], by: str = "connections") -> Sweep:
    """A sweep over these levels, of a closed loop or of constant rates."""
    closed: dict[str, Any] = {"generator": "wrk", "mode": "closed", "rate": None}
    load = builders.load(**(closed if by == "connections" else {}))
    cells = [builders.cell(load=replace(load, **{by: level})) for level in levels]
    items = [
        builders.item(cell_id=f"alpha-{level}", cell=cell, expected_s=7.0)
        for level, cell in zip(levels, cells, strict=True)
    ]
    return Sweep(by="rate" if by == "rate" else "connections", levels=items, rule=RULE)


def result(goodput: float, cpu: float = 0.5, valid: bool = True) -> Result:
    base = builders.result()
    telemetry = builders.present(base.telemetry)
    return replace(
        base,
        validity=builders.valid() if valid else builders.void("steal"),
        goodput=float(goodput),
        telemetry=replace(telemetry, server=replace(telemetry.server, cpu_busy=cpu)),
    )


def run(
    sweep: Sweep, results: Sequence[Result], blocks: int = 1
) -> tuple[list[str], dict[str, CellRecords]]:
    """What was measured, in order; ``found`` is the result of each level, in every block."""
    records: dict[str, CellRecords] = {}
    ids: list[str] = []
    by_id = dict(zip((item.cell_id for item in sweep.items), results, strict=True))
    for block in range(1, blocks + 1):
        while item := sweep.next_item(block, records):
            assert sweep.remaining_seconds(blocks, records) > 0
            ids.append(item.cell_id)
            add(records, by_id[item.cell_id], item.cell_id)
    assert len(ids) == sweep.completed(records)
    assert sweep.expected(blocks, records) == sweep.remaining_seconds(blocks, records) == 0
    return ids, records


def test_sweep_stops_where_throughput_stops_growing_and_repeats_what_it_measured() -> None:
    sweep = sweep_over(DOUBLING)
    goodputs = [100, 190, 350, 600, 640, 650, 650, 650]
    ids, records = run(sweep, [result(goodput) for goodput in goodputs], blocks=3)
    assert ids == [f"alpha-{level}" for level in (1, 2, 4, 8, 16)] * 3
    facts: Facts = {"by": "connections", "from_level": 8, "level_growth": 1.0}
    reason = Reason(code="throughput_flat", value=640 / 600 - 1, limit=0.1, facts=facts)
    assert sweep.stop(records) == Stop(index=4, reason=reason)


def test_sweep_stops_where_the_cpu_is_full() -> None:
    sweep = sweep_over(DOUBLING)
    busy = [0.3, 0.6, 0.91, 1, 1, 1, 1, 1]
    ids, records = run(sweep, [result(100 * 2**i, cpu) for i, cpu in enumerate(busy)])
    assert len(ids) == 3
    reason = Reason(code="server_cpu_full", value=0.91, limit=0.9)
    assert sweep.stop(records) == Stop(index=2, reason=reason)


def test_rates_close_together_are_held_or_not() -> None:
    """Growth counts against what the level grew by, be that little."""
    rates = (1000, 1020, 1040, 1060, 1080, 1100)
    held = run(sweep_over(rates, "rate"), [result(rate) for rate in rates])[0]
    assert len(held) == len(rates)
    over = [result(min(rate, 1040) - (rate > 1040)) for rate in rates]
    assert len(run(sweep_over(rates, "rate"), over)[0]) == 4


def test_a_void_level_decides_nothing() -> None:
    goodputs = [100, 200, 10, 400, 410, 420, 430, 440]
    results = [result(g, 0.99 if g == 10 else 0.5, g != 10) for g in goodputs]
    assert len(run(sweep_over(DOUBLING), results)[0]) == 5


def test_a_failed_level_is_measured_again_and_the_first_that_did_not_fail_decides() -> None:
    sweep = sweep_over((1, 2, 4))
    failed = replace(result(1), error="cut off")
    records: dict[str, CellRecords] = {}
    add(records, result(100), "alpha-1")
    add(records, failed, "alpha-2")
    item = builders.present(sweep.next_item(1, records))
    assert item.cell_id == "alpha-2"
    # A later repetition does not reopen what the first block decided.
    for cell_id, goodput in (("alpha-1", 10), ("alpha-2", 105), ("alpha-2", 200)):
        add(records, result(goodput), cell_id)
    assert sweep.next_item(2, records) is None


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=8), st.integers(1, 3))
def test_sweep_always_ends_and_every_block_is_alike(goodputs: list[float], blocks: int) -> None:
    sweep = sweep_over(DOUBLING[: len(goodputs)])
    ids, records = run(sweep, [result(goodput) for goodput in goodputs], blocks)
    assert ids == ids[: len(ids) // blocks] * blocks
    stop = sweep.stop(records)
    if stop is None:
        assert len(ids) == blocks * len(goodputs)
    else:
        assert len(ids) == blocks * (stop.index + 1)
        assert goodputs[stop.index] < 1.1 * goodputs[stop.index - 1]


def test_sweep_is_repeated_at_its_lowest_level() -> None:
    again = sweep_over(DOUBLING).repeated("again", "aa_control")
    assert (again.item.cell_id, again.item.base, again.item.purpose) == (
        "again", "alpha-1", "aa_control",
    )  # fmt: skip
