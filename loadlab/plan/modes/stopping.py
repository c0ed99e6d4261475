"""When measuring ends: the rules of a cell, a block, a sweep, a search and of repeats.

| what | it ends | rule |
|---|---|---|
| a cell that fails | after TRIES failures in a row, for this invocation | TRIES |
| a block of a cell | with a valid measurement, or after `void_tries` void ones | tries_left |
| a cell that is measured once | with a valid measurement, or after its tries | is_left_once |
| repeats of void measurements | at PART_MAX of the pair's load | may_repeat |
| repeats of a cell | when the hosts void it twice for the same limit | may_repeat |
| a sweep | when more load brings no more, or the server's CPU is full | end_of_sweep |
| a search | when the rates that meet and miss the objective are close | end_of_search |

A comparison of variants and a matrix end by rules of their own: kinds/gate/blocks_decided.py and
kinds/matrix/blocks_left.py.
"""

from collections.abc import Sequence

from msgspec import Struct

from loadlab.model import Item, Purpose, Reason, Record, Repetition
from loadlab.model.base import Above0, Count, Fraction, NotNegative, Positive
from loadlab.plan.records import Records, by_block, measured, valid
from loadlab.reasons.validity_reasons import CAUSES

# How often a failing cell is tried before it is abandoned.
TRIES = 2
# How often a saturation is measured at least, until one is valid.
SATURATION_TRIES = 2
# How often a point of a curve is measured until it is valid.
CURVE_TRIES = 2
# Load of the repeats of a pair / load of its plan.
PART_MAX = 0.5
LOWEST = 1.0  # requests/s, of a search
# A cell measured once more, beside a program that slows the server.
OBSERVED: tuple[Purpose, ...] = ("py_spy", "trace")
# No statistics use these, so one measurement is enough.
ONCE: tuple[Purpose, ...] = (*OBSERVED, "injection", "check", "cross_check", "overload")

# Of these one that must be valid: a check measures the hosts as they are at that moment, and an
# overload is the only one of its cell.
ONCE_VALID: tuple[Purpose, ...] = ("check", "overload")


def saturation_tries(repetitions: int) -> int:
    """Return how often a saturation is measured until one is valid.

    Cells need it for their rate, so it grows with the repetitions that these have.
    """
    return max(SATURATION_TRIES, repetitions)


def tries_of(cell_id: str, records: Records, tries: int) -> int:
    """Return ``tries``, how often a cell is measured until a measurement is valid; 1 where void
    ones may not be made again."""
    return tries if cell_id not in records or records[cell_id].may_repeat else 1


def tries_left(cell_id: str, block: int, records: Records, tries: int) -> int:
    """Return how often a cell may still be measured in a block; 0 when the block is complete.

    It is complete with a valid measurement, or after ``tries`` void ones.
    """
    tried = by_block(cell_id, records).get(block, ())
    return _left(tried, tries_of(cell_id, records, tries))


def _left(tried: Sequence[Repetition], tries: int) -> int:
    is_complete = any(repetition.validity.valid for repetition in tried)
    return 0 if is_complete else max(0, tries - len(tried))


def likely_left(cell_id: str, repetitions: int, records: Records, tries: int) -> int:
    """Return the likely number of measurements until a cell's blocks are complete.

    It expects the same share of void ones as so far. One valid measurement is added to these, so
    that a single void one does not count as all.
    """
    tried = measured(cell_id, records)
    share = sum(not repetition.validity.valid for repetition in tried) / (len(tried) + 1)
    blocks, most = by_block(cell_id, records), tries_of(cell_id, records, tries)
    left = (_left(blocks.get(block, ()), most) for block in range(1, repetitions + 1))
    return round(sum(share**again for count in left for again in range(count)))


def is_left_once(item: Item, tries: int, records: Records) -> bool:
    """Return whether an item that is measured once has no valid measurement and tries left."""
    cell_id = item.cell_id
    tried = len(measured(cell_id, records))
    return tried < tries_of(cell_id, records, tries) and not valid(cell_id, records)


def may_repeat(item: Item, seconds_left: float, records: Records) -> bool:
    """Return whether a void measurement of the item may be made again.

    ``seconds_left``: of load, for repeats of its pair.
    """
    return item.expected_s <= seconds_left and not is_lasting(item.cell_id, records)


def is_lasting(cell_id: str, records: Records) -> bool:
    """Return whether the latest two measurements are void for the same limit of the hosts, and
    nothing from outside explains it."""
    latest = measured(cell_id, records)[-2:]
    if len(latest) < 2 or any(reasons_from_outside(repetition) for repetition in latest):
        return False
    first, second = (
        {reason.code for reason in repetition.validity.reasons} for repetition in latest
    )
    return any(CAUSES.get(code) == "hosts" for code in first & second)


def reasons_from_outside(repetition: Repetition) -> list[Reason]:
    """Return the reasons from outside that void a repetition."""
    reasons = repetition.validity.reasons
    return [reason for reason in reasons if CAUSES.get(reason.code) == "outside"]


class SweepRule(Record, kw_only=True, frozen=True):
    """When a sweep stops; files/methods.yml and Thresholds have the values."""

    #: Least growth of the throughput, a fraction of the growth of the level.
    growth_min: NotNegative
    server_cpu_full: Fraction  #: Busy fraction of the server's CPU that is full.


class Point(Struct, kw_only=True, frozen=True):
    """A level of a sweep (connections, or requests/s), and the goodput there, requests/s."""

    level: float
    goodput: float


def end_of_sweep(
    rule: SweepRule, by: str, first: Repetition, point: Point, before: Point | None
) -> Reason | None:
    """Return why no level above ``point`` is measured; None where one is.

    ``by``: what rises. ``first``: the first valid measurement there. ``before``: the point below.
    """
    busy = first.telemetry.server.cpu_busy if first.telemetry is not None else 0.0
    if busy >= rule.server_cpu_full:
        return Reason(code="server_cpu_full", value=busy, limit=rule.server_cpu_full)
    if before is None or before.goodput == 0:
        return None
    growth, added = point.goodput / before.goodput - 1, point.level / before.level - 1
    if growth >= rule.growth_min * added:
        return None
    return Reason(
        code="throughput_flat",
        value=growth,
        limit=rule.growth_min,
        facts={"by": by, "from_level": before.level, "level_growth": added},
    )


class SearchRule(Record, kw_only=True, frozen=True):
    """When a search ends; files/methods.yml has the values."""

    #: Difference of the lowest rate that fails and the highest that passes, a fraction of the
    #: latter; also how much lower the next rate to confirm is.
    apart_max: Above0
    #: Lower rates that are tried where the rate found is not confirmed, before the search goes on
    #: below it.
    lower_steps_max: Count
    #: Valid probes of a rate that miss, and none that meets the objective, before the rate bounds a
    #: bisection; confirming measurements of a block that miss before the rate is not confirmed.
    misses_to_bound: Positive = 1
    misses_to_end: Positive = 1  #: Probes of the lowest rate that misses before the search ends.


class Bracket(Struct, kw_only=True, frozen=True):
    """The rates, in requests/s, that probes have decided so far."""

    met: float | None  #: The highest rate known to meet the objective.
    missed: float | None  #: The lowest that never did.
    #: How many of its probes missed; as many as ever needed where further ones were void.
    misses: int
    undecided: dict[float, list[Reason]]  #: Rate -> void reasons, where every probe was void.


class Step(Struct, kw_only=True, frozen=True):
    """The next step of a search: a ``rate`` to probe, or the ``highest`` that meets the objective,
    or neither where the search failed.

    ``reasons`` say why the search ended: what bounds the rate, then void reasons where there are.
    """

    rate: float | None = None
    highest: float | None = None
    reasons: list[Reason] = []


def is_close(rule: SearchRule, met: float, missed: float, middle: float) -> bool:
    """Return whether a bisection between two rates ends; ``middle``: the rate between them."""
    return missed <= (1 + rule.apart_max) * met or not met < middle < missed


def end_of_search(
    rule: SearchRule, bracket: Bracket, ceiling: float, middle: float | None
) -> Step | None:
    """Return how a search ends by the rates that are decided; None while it goes on.

    ``ceiling``: the highest rate to ask for. ``middle``: of the bracket, None of an open one.
    """
    met, missed = bracket.met, bracket.missed
    if missed is None:
        if met is not None and met >= ceiling:
            return Step(highest=met, reasons=[Reason(code="generator_ceiling", value=met)])
        return None
    if bracket.misses < rule.misses_to_end:
        return None
    if met is None or middle is None:
        lowest = [Reason(code="lowest_rate_missed", value=missed)]
        return Step(reasons=lowest) if missed <= LOWEST else None
    if bracket.misses < rule.misses_to_bound or not is_close(rule, met, missed, middle):
        return None
    return Step(highest=met, reasons=[Reason(code="rate_missed_slo", value=missed)])
