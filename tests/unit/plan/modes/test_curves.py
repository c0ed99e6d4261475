"""When the rates of a curve are measured, and which they are."""

from msgspec.structs import replace

from loadlab.plan import schedule
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import CellRecords
from loadlab.plan.schedule import NextMeasurement
from tests.unit import builders
from tests.unit.plan.test_schedule import add, measured

Records = dict[str, CellRecords]


def run(
    plan: Plan, records: Records, void: tuple[str, ...] = (), failing: tuple[str, ...] = ()
) -> list[NextMeasurement]:
    """What one invocation measures, with a closed loop of 1,240 requests/s; ``void``, ``failing``:
    purposes of which each measurement is."""
    turns: list[NextMeasurement] = []
    since = schedule.highest_repetitions(records)
    while True:
        failures = schedule.consecutive_failures(records, since)
        item = schedule.next_item(plan, records, failures, None, 0)
        if item is None:
            return turns
        turns.append(item)
        result = measured(
            item, item.repetition, goodput=1240.0, block=item.block,
            error="broken" if item.purpose in failing else None,
        )  # fmt: skip
        if item.purpose in void:
            result = replace(result, validity=builders.void("steal"))
        add(records, result, item.cell_id)


def planned(endpoint: str = "agents", repetitions: int = 2, seed: int = 1) -> Plan:
    return builders.plan(curve=True, endpoint=endpoint, repetitions=repetitions, seed=seed)


def test_a_curve_follows_its_closed_loop_at_fractions_of_it() -> None:
    orders = set()
    for seed in range(1, 6):
        turns = run(planned("index,agents", seed=seed), {})
        purposes = [item.purpose for item in turns]
        assert purposes.count("curve") == 8
        assert len(turns) == turns[-1].total == 2 * (2 + 2 + 4)
        for endpoint in ("index", "agents"):
            own = [item for item in turns if item.cell.endpoint == endpoint]
            curve = [turn for turn in own if turn.purpose == "curve"]
            loop = next(at for at, turn in enumerate(own) if turn.purpose == "closed_loop")
            assert min(own.index(turn) for turn in curve) > loop
            rates = [turn.cell.load.rate for turn in curve]
            assert sorted(map(float, map(builders.present, rates))) == [310, 620, 930, 1200]
            assert {turn.block for turn in curve} == {1}
            orders.add(tuple(rates))
    # As everything in a block, they are in a random order.
    assert len(orders) > 2


def test_a_curve_is_not_measured_again_with_more_repetitions() -> None:
    records: Records = {}
    run(planned(repetitions=1), records)
    later = run(planned(repetitions=3), records)
    assert {item.purpose for item in later} == {"measure", "closed_loop"}


def test_a_void_rate_is_measured_once_more() -> None:
    records: Records = {}
    turns = run(planned(), records, void=("curve",))
    tries = [item.repetition for item in turns if item.purpose == "curve"]
    assert sorted(tries) == [1] * 4 + [2] * 4
    assert run(planned(), records) == []


def test_a_curve_without_a_valid_closed_loop_is_left_out_and_the_run_complete() -> None:
    records: Records = {}
    turns = run(planned(), records, void=("closed_loop",))
    assert "curve" not in {item.purpose for item in turns}
    ahead = schedule.outlook(planned(), records, None)
    assert (ahead.position - 1, ahead.seconds_left) == (ahead.total, 0)
    # Only where no block can bring a valid one.
    assert schedule.outlook(planned(repetitions=3), records, None).total > ahead.total + 2


def test_a_curve_follows_a_closed_loop_that_is_valid_in_a_later_block() -> None:
    records: Records = {}
    run(planned(repetitions=1), records, void=("closed_loop",))
    turns = run(planned(repetitions=2), records)
    purposes = [item.purpose for item in turns]
    assert purposes.count("curve") == 4
    assert purposes.index("closed_loop") < purposes.index("curve")


def test_a_curve_whose_closed_loop_failed_is_still_to_be_measured() -> None:
    records: Records = {}
    turns = run(planned(repetitions=1), records, failing=("closed_loop",))
    assert [item.purpose for item in turns].count("curve") == 0
    ahead = schedule.outlook(planned(repetitions=1), records, None)
    assert ahead.total - (ahead.position - 1) == 1 + 4
    assert len(run(planned(repetitions=1), records)) == 5
