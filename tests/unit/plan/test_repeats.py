"""How much of a run its repeats may take, and what is told of a disturbed one."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Injection, Item, Reason, Validity
from loadlab.plan import repeats, schedule
from loadlab.plan.modes.levels import Sweep
from loadlab.plan.modes.stopping import PART_MAX, SweepRule
from loadlab.plan.plan_document import Plan
from loadlab.plan.schedule import NextMeasurement
from loadlab.reasons.validity_reasons import CAUSES, VOID
from loadlab.report.words import disturbances
from tests.unit import builders
from tests.unit.plan.modes.probing import track

from .test_schedule import CELLS, PLANS, Records, add, item, measured, plan_of, with_tries

STEAL = Reason(code="steal", value=0.2, limit=0.01, facts={"host": "client"})
FOREIGN = Reason(code="foreign_cpu", value=0.5, limit=0.2, facts={"host": "server", "mean": 0.35})
FULL = Reason(code="generator_cpu", value=0.97, limit=0.9)
QUIET = "Run again in a quieter hour"


def run(
    plan: Plan, records: Records, void: Callable[[int], Sequence[Reason]], pair: int = 0
) -> list[NextMeasurement]:
    """Return what a pair measures, where the measurement of a number is void for these reasons."""
    turns: list[NextMeasurement] = []
    hosts = builders.present(builders.result().telemetry)
    taken = replace(hosts, client=builders.telemetry(cpu={"steal": 0.2}))
    while now := schedule.next_item(plan, repeats.limited(plan, records), {}, None, pair):
        reasons = list(void(len(turns)))
        validity = Validity(valid=not reasons, reasons=reasons, findings=[])
        result = measured(now, now.repetition, block=now.block, telemetry=taken)
        add(records, replace(result, validity=validity), now.cell_id)
        turns.append(now)
    return turns


def seconds(turns: Sequence[Item]) -> float:
    return sum(item.expected_s for item in turns)


@given(PLANS, st.integers(1, 3))
def test_load_is_at_most_half_longer_though_every_measurement_is_void(
    plan: Plan, tries: int
) -> None:
    plan, records = with_tries(plan, tries), Records()
    for pair in sorted({turn.pair for turn in plan.experiments}):
        planned = schedule.outlook(plan, {}, pair)
        turns = run(plan, records, lambda number: [STEAL], pair)
        assert seconds(turns) <= (1 + PART_MAX) * planned.seconds_left
        blocks = {(turn.cell_id, turn.block) for turn in turns}
        # What was planned is measured all the same, and the run is complete.
        assert len(blocks) == planned.total
        assert run(plan, records, lambda number: [], pair) == []


def test_sweep_and_search_end_within_that_time_too() -> None:
    levels = [
        replace(item(f"level-{n}"), cell=builders.cell(load=builders.load(rate=float(n))))
        for n in (1, 2, 4)
    ]
    rule = SweepRule(growth_min=0.1, server_cpu_full=2.0)
    sweep = Sweep(by="rate", levels=levels, rule=rule, void_tries=3)
    for experiments in ([sweep], [track(100.0)]):
        plan, records = replace(plan_of([]), experiments=experiments), Records()
        planned = schedule.outlook(plan, {}, 0).seconds_left
        turns = run(plan, records, lambda number: [STEAL])
        assert 0 < seconds(turns) <= (1 + PART_MAX) * planned
        # What could not be repeated is undecided, and not unfinished.
        ended = schedule.outlook(plan, repeats.limited(plan, records), 0)
        assert ended.seconds_left == 0


def test_a_cell_that_is_too_much_for_the_hosts_is_repeated_once_in_all() -> None:
    plan = with_tries(plan_of(CELLS[:1], 6), 3)
    assert len(run(plan, {}, lambda number: [FULL])) == 6 + 1
    # Where another machine took the CPU, the next one may be valid.
    assert len(run(plan, {}, lambda number: [FULL, STEAL])) == 6 + 3


def test_what_was_left_void_is_counted_and_told() -> None:
    plan, records = with_tries(plan_of(CELLS[:4], 3), 3), Records()
    turns = run(plan, records, lambda number: [STEAL] if number >= 4 else [])
    assert len(turns) == 12 + 6
    disturbance = repeats.disturbance(plan, records)
    assert (disturbance.measured, disturbance.void, disturbance.outside) == (18, 14, 14)
    assert (disturbance.repeats_s, disturbance.repeats_max_s, disturbance.withheld) == (60, 60, 5)
    assert repeats.is_notable(disturbance)
    took = (
        "Repeats of void measurements took 60 s, the most that they may take (half of the planned "
        "load)"
    )
    assert (
        disturbances.spent(disturbance)
        == f"{took}. From here on void measurements are not repeated"
    )
    advice = VOID["steal"].remedy
    assert disturbances.whole(disturbance) == (
        "14 of 18 measurements are void, all because another machine took 20 % of the "
        f"client's CPU (steal). {advice}. {QUIET}. {took}; 5 were not repeated."
    )


def test_without_anything_from_outside_the_most_frequent_reason_is_told() -> None:
    late = Reason(code="generator_late")
    plan, records = with_tries(plan_of(CELLS[:4], 1), 3), Records()
    run(plan, records, lambda number: [late])
    sentence = disturbances.whole(repeats.disturbance(plan, records))
    assert sentence.startswith(
        "6 of 6 measurements are void, the most frequent reason is generator_late. "
        f"{VOID['generator_late'].remedy}. {QUIET}. "
    )
    assert sentence.endswith("; 3 were not repeated.")


@pytest.mark.parametrize(
    ("voids", "early"), [([STEAL], True), ([FOREIGN], True), ([FULL], False), ([], False)]
)
def test_a_disturbed_run_is_told_early(voids: list[Reason], early: bool) -> None:
    plan, records = plan_of([item(f"cell-{n}") for n in range(12)], 4), Records()
    run(plan, records, lambda number: voids if number < 5 else [])
    first = {
        name: replace(record, repetitions=record.repetitions[:1])
        for name, record in records.items()
    }
    disturbance = repeats.disturbance(plan, first)
    assert (disturbance.measured, disturbance.void) == (12, len(voids) * 5)
    assert repeats.is_early(disturbance, 48) is early
    # Of the same part of fewer measurements nothing is said yet.
    assert not repeats.is_early(replace(disturbance, measured=11, outside=5), 48)
    assert repeats.is_early(replace(disturbance, measured=4, outside=2), 16)
    assert not repeats.is_early(replace(disturbance, outside=4), 48)
    if early:
        kind = voids[0].code
        sentence = disturbances.early(disturbance)
        assert sentence == {
            "steal": "Another machine took 20 % of the client's CPU (steal)",
            "foreign_cpu": "Programs that are not the lab's took 35 % of the server's CPU "
            "(foreign_cpu)",
        }[kind] + (
            "; 5 of the first 12 measurements are void for that, and results will be few. "
            f"{VOID[kind].remedy}. {QUIET}"
        )


def test_injected_faults_are_no_disturbance() -> None:
    cell = builders.cell(load=builders.load(injection=Injection(refused_every=2)))
    plan, records = plan_of([replace(CELLS[0], cell=cell)], 4), Records()
    run(plan, records, lambda number: [STEAL])
    assert repeats.disturbance(plan, records).measured == 0


def test_a_run_without_a_valid_measurement_ends_with_cause_and_remedy() -> None:
    sentence = disturbances.nothing_valid([FULL, STEAL, STEAL], "ansible-playbook lab.yml")
    assert sentence == (
        "No measurement is valid: steal: 0.200 on client, limit 0.01 (also generator_cpu). "
        f"{VOID['steal'].remedy}. {QUIET}: ansible-playbook lab.yml"
    )
    assert disturbances.nothing_valid([], "") == ""
    emulated = Reason(code="emulated", facts={"hosts": ["server", "client"]})
    # At any hour, whatever else is as frequent.
    assert disturbances.nothing_valid([STEAL, emulated], "ansible-playbook lab.yml") == (
        "No measurement is valid: emulated: QEMU emulates the processors of server and client, "
        f"without KVM (also steal). {VOID['emulated'].remedy}"
    )


def test_each_void_reason_has_a_cause() -> None:
    assert set(CAUSES) == set(VOID)
