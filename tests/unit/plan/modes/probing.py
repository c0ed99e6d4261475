"""A simulated prober: a server of known capacity, some of whose probes miss by bad luck."""

import random
from collections.abc import Sequence
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from loadlab.model import ErrorCounts, Item, ResponseTime, Result
from loadlab.plan import cell_ids
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import SearchRule
from loadlab.plan.records import CellRecords, Records, cell_records
from tests.unit import builders

REQUESTS = 5000
NO_ERRORS = ErrorCounts(**dict.fromkeys(ErrorCounts.__struct_fields__, 0))
WAITS = ResponseTime(
    mean_us=910.0,
    p50_us=900.0,
    p90_us=950.0,
    p95_us=960.0,
    p99_us=1000.0,
    p99_9_us=2000.0,
    requests=REQUESTS,
    failed=0,
)
# One bad measurement decides, as before misses were repeated.
BY_ONE_MISS = SearchRule(apart_max=0.05, lower_steps_max=2)
_METHODS = yaml.safe_load((builders.ROOT / "files" / "methods.yml").read_text())
RULE = SearchRule(**{name: _METHODS[name] for name in SearchRule.__struct_fields__})


def track(
    start: float, ceiling: float | None = None, whole: bool = False, rule: SearchRule = RULE
) -> Search:
    """Return a search for p99 of at most 100 ms that starts at this rate, requests/s."""
    cell = builders.cell(load=builders.load(rate=start))
    item = builders.item(
        cell_id=cell_ids.cell_id(cell, "measure"),
        cell=cell,
        expected_s=7.0,
        slo={"p99_ms": 100.0, "errors": 0.0},
        sent_min=0.99,
    )
    return Search(start=item, rule=rule, whole=whole, ceiling=ceiling, void_tries=3)


def record(met: bool, valid: bool = True, **changed: Any) -> Result:
    """Return a result that meets that objective, or whose p99 is 312 ms."""
    waits = WAITS if met else replace(WAITS, p99_us=312_000.0)
    figures: dict[str, Any] = {
        **dict.fromkeys(("requests", "responses", "ok", "scheduled"), REQUESTS),
        "response_time": waits,
        "errors": NO_ERRORS,
        "unsent": 0,
        "goodput": 1000.0,
    }
    return replace(
        builders.result(),
        validity=builders.valid() if valid else builders.void("steal"),
        **{**figures, **changed},
    )


def of_item(result: Result, item: Item) -> Result:
    """Return the result as one of this item."""
    return replace(
        result, cell_id=item.cell_id, cell=item.cell, purpose=item.purpose, base=item.base
    )


class Luck(Struct, kw_only=True, frozen=True):
    """How often a probe is wrong, fractions: below the capacity (a miss), above it (a pass)."""

    misses: float = 0.0
    passes: float = 0.0


class Ended(Struct, kw_only=True, frozen=True):
    """How searches ended: the rate confirmed / the capacity, None where none was; their probes and
    all of their measurements."""

    shares: Sequence[float | None]
    probes: Sequence[int]
    measurements: Sequence[int]

    def below(self, share: float) -> float:
        """Return the fraction of the searches that ended below this share, or without a rate."""
        low = [rate for rate in self.shares if rate is None or rate < share]
        return len(low) / len(self.shares)

    def above(self, share: float) -> float:
        """Return the fraction of the searches that ended above this share."""
        return sum(rate is not None and rate > share for rate in self.shares) / len(self.shares)


def next_of(search: Search, records: Records, repetitions: int) -> tuple[Item, int] | None:
    """Return the next item and its block, from block 1 on as in a schedule; None at the end."""
    blocks = range(1, repetitions + 1)
    turns = ((search.next_item(block, records), block) for block in blocks)
    return next(((item, block) for item, block in turns if item), None)


def one_search(
    search: Search, capacity: float, luck: Luck, repetitions: int, rng: random.Random
) -> tuple[float | None, int, int]:
    """Run a search to its end; return the rate confirmed, its probes and its measurements."""
    records: dict[str, CellRecords] = {}
    purposes: list[str] = []
    good, bad = record(True), record(False)
    while following := next_of(search, records, repetitions):
        item, block = following
        held = builders.present(item.cell.load.rate) <= capacity
        wrong = rng.random() < (luck.misses if held else luck.passes)
        result = of_item(good if held != wrong else bad, item)
        add_result(records, replace(result, block=block))
        purposes.append(item.purpose)
    return _confirmed(search, records), purposes.count("probe"), len(purposes)


def add_result(records: dict[str, CellRecords], result: Result) -> None:
    before = records[result.cell_id].repetitions if result.cell_id in records else ()
    kept = [repetition for repetition in before if isinstance(repetition, Result)]
    numbered = replace(result, repetition=len(kept) + 1)
    records[result.cell_id] = cell_records([*kept, numbered])


def _confirmed(search: Search, records: Records) -> float | None:
    item = search.rate_to_confirm(records)
    return None if item is None else item.cell.load.rate


def simulate(
    count: int, luck: Luck, rule: SearchRule = RULE, repetitions: int = 5, seed: int = 1
) -> Ended:
    """Run searches whose capacity and start lie anywhere from 20 to 50,000 requests/s."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        capacity, start = (20 * 2500 ** rng.random() for _ in range(2))
        search = track(float(f"{start:.3g}"), rule=rule)
        rate, probes, measurements = one_search(search, capacity, luck, repetitions, rng)
        rows.append((None if rate is None else rate / capacity, probes, measurements))
    shares, probes_of, measurements_of = zip(*rows, strict=True)
    return Ended(shares=shares, probes=probes_of, measurements=measurements_of)
