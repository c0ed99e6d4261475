"""Search for the highest rate that meets an objective.

The search doubles or halves the rate until one rate meets the objective and one does not, bisects
between them, then confirms the rate found with repetitions.

A search's track is {kind: search, cells: [item at the starting rate], rule: {apart_max and
lower_steps_max of files/methods.yml}, whole (whether the generator accepts whole rates only),
ceiling (upper limit in requests/s; None where unknown)}. Its items also have slo, the objective,
and sent_min, the fraction of the schedule that must be sent. All decisions follow from the probes
on disk, whatever their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loadlab.core import formatting
from loadlab.scheduling import slo
from loadlab.scheduling.experiments import Item, Records, Track, measured
from loadlab.scheduling.slo import Judged

LOWEST = 1.0  # requests/s
HIGHEST = 1_000_000.0  # used where no ceiling is known
DIGITS = 3  # significant digits of a rate
PROBE = "-probe"
# How often a measurement is made until it is valid.
TRIES = 2
# Doublings or halvings that a search is assumed to need while nothing is known.
USUAL_STEPS = 2


@dataclass(frozen=True)
class Bracket:
    """The rates that probes have decided so far.

    ``met``: the highest rate known to meet the objective. ``missed``: the lowest that does not.
    ``undecided``: rate -> reason, where every probe was void.
    """

    met: float | None
    missed: float | None
    undecided: dict[float, str]


@dataclass(frozen=True)
class Step:
    """The next step: a ``rate`` to probe, or the rate ``found``, or neither where the search
    failed.

    ``why`` says why the search ended.
    """

    rate: float | None
    found: float | None
    why: str


def with_rate(item: Item, rate: float) -> dict[str, Any]:
    """Return the item with another rate, in requests/s; its cell_id stays."""
    return {**item, "cell": {**item["cell"], "load": {**item["cell"]["load"], "rate": rate}}}


def at(item: Item, rate: float, purpose: str) -> dict[str, Any]:
    """Return the item at another rate, with that rate in its cell_id and with this purpose."""
    head, tail = _ends(item)
    ending = PROBE if purpose == "probe" else ""
    cell_id = f"{head}{formatting.plain(rate)}{tail}{ending}"
    return {**with_rate(item, rate), "cell_id": cell_id, "purpose": purpose}


def said(item: Item, record: Item) -> str:
    """Return for the terminal whether a measurement met its objective; empty without
    an objective."""
    if "slo" not in item or record["error"] is not None:
        return ""
    found = judge(item, record)
    if found.met is None:
        return ""
    return f"; {found.why}: {'met' if found.met else 'not met'}"


def _ends(item: Item) -> tuple[str, str]:
    """Return the parts of the item's cell_id before and after its rate."""
    rate = f"-{formatting.plain(item['cell']['load']['rate'])}rps-"
    head, _, tail = item["cell_id"].rpartition(rate)
    return f"{head}-", f"rps-{tail}"


def rates(track: Track, records: Records) -> list[float]:
    """Return every rate that has a probe, in requests/s, ascending."""
    head, tail = _ends(track["cells"][0])
    tail += PROBE
    found = (
        cell_id.removeprefix(head).removesuffix(tail)
        for cell_id in records
        if cell_id.startswith(head) and cell_id.endswith(tail)
    )
    return sorted(_number(float(rate)) for rate in found)


def _number(rate: float) -> float:
    return int(rate) if rate.is_integer() else rate


def _rounded(track: Track, rate: float) -> float:
    """Round to DIGITS significant digits, and to a whole number where the generator needs one."""
    short = float(f"{rate:.{DIGITS}g}")
    return round(short) if track["whole"] else _number(short)


def highest(track: Track) -> float:
    """Return the highest rate to ask for, in requests/s: the ceiling, rounded down."""
    most = float(track["ceiling"] or HIGHEST)
    step = 10.0 ** (math.floor(math.log10(most)) - DIGITS + 1)
    down = float(f"{math.floor(most / step) * step:.{DIGITS}g}")
    return max(LOWEST, math.floor(down) if track["whole"] else _number(down))


def judged(item: Item, records: Records) -> list[Judged]:
    """Return the judgement of each measurement of the item that did not fail."""
    return [judge(item, record) for record in measured(item["cell_id"], records)]


def judge(item: Item, record: Item) -> Judged:
    """Return the judgement of one measurement that did not fail."""
    return slo.judge(record, item["slo"], item["sent_min"])


def bracket(track: Track, records: Records) -> Bracket:
    """Return what the probes have decided; for each rate its first valid probe counts."""
    met: list[float] = []
    missed: list[float] = []
    undecided: dict[float, str] = {}
    for rate in rates(track, records):
        found = judged(at(track["cells"][0], rate, "probe"), records)
        decided = [one for one in found if one.met is not None]
        if decided:
            (met if decided[0].met else missed).append(rate)
        elif len(found) >= TRIES:
            undecided[rate] = found[-1].why
    lowest = min(missed, default=None)
    below = [rate for rate in met if lowest is None or rate < lowest]
    return Bracket(max(below, default=None), lowest, undecided)


def step(track: Track, known: Bracket) -> Step:
    """Return the next step of the search after these probes."""
    met, missed, most = known.met, known.missed, highest(track)
    if missed is None:
        if met is None:
            rate = min(max(track["cells"][0]["cell"]["load"]["rate"], LOWEST), most)
        elif met < most:
            rate = min(_rounded(track, 2 * met), most)
        else:
            return Step(None, met, f"{met:,g} requests/s is the most that the generator offers")
    elif met is None:
        if missed <= LOWEST:
            return Step(None, None, f"not even {missed:,g} requests/s meets it")
        rate = max(_rounded(track, missed / 2), LOWEST)
    else:
        why = f"{missed:,g} requests/s does not meet it"
        rate = _rounded(track, math.sqrt(met * missed))
        if missed <= (1 + track["rule"]["apart_max"]) * met or not met < rate < missed:
            return Step(None, met, why)
    if rate in known.undecided:
        why = f"{rate:,g} requests/s could not be judged, {known.undecided[rate]}"
        return Step(None, None, why)
    return Step(rate, None, "")


def candidates(track: Track, found: float) -> list[float]:
    """Return the rates to confirm, in requests/s: the rate found, then lower ones.

    A lower rate is used where the rate before it was not confirmed.
    """
    those = [found]
    for _ in range(track["rule"]["lower_steps_max"]):
        lower = _rounded(track, those[-1] * (1 - track["rule"]["apart_max"]))
        lower = min(lower, those[-1] - 1) if track["whole"] else lower
        if lower < LOWEST:
            break
        those.append(lower)
    return those


def candidate(track: Track, records: Records) -> Item | None:
    """Return the item at the rate to confirm, also when it is confirmed already.

    None until the search has found a rate, and where no candidate is left.
    """
    found = step(track, bracket(track, records)).found
    for rate in [] if found is None else candidates(track, found):
        item = at(track["cells"][0], rate, "measure")
        if all(one.met is not False for one in judged(item, records)):
            return item
    return None


def following(track: Track, block: int, records: Records) -> Item | None:
    """Return the next probe or confirming measurement; None when this block is complete.

    In block b (from 1) the rate has b valid measurements that all meet the objective.
    """
    rate = step(track, bracket(track, records)).rate
    if rate is not None:
        return at(track["cells"][0], rate, "probe")
    item = candidate(track, records)
    if item is None:
        return None
    found = judged(item, records)
    met = sum(one.met is True for one in found)
    return item if met < block and len(found) < TRIES * block else None


def _halvings(track: Track, low: float, high: float) -> int:
    """Return how many bisections bring two rates close enough; rounding may need one more."""
    apart = math.log(high / low) / math.log1p(track["rule"]["apart_max"])
    return max(0, math.ceil(math.log2(apart))) + 1 if apart > 1 else 0


def _probes(track: Track, known: Bracket) -> int:
    """Return the largest number of probes still to make, each counted once."""
    met, missed, most = known.met, known.missed, highest(track)
    if met is not None and missed is not None:
        return _halvings(track, met, missed)
    between = _halvings(track, 1, 2)
    if met is None and missed is None:
        start = min(max(track["cells"][0]["cell"]["load"]["rate"], LOWEST), most)
        up, down = math.log2(most / start), math.log2(start / LOWEST)
        return 1 + math.ceil(max(up, down)) + between
    ways = most / met if met is not None else (missed or LOWEST) / LOWEST
    return math.ceil(math.log2(ways)) + between


def left(track: Track, repetitions: int, records: Records) -> int:
    """Return the upper bound of the measurements left.

    It assumes that each is void once, and that each candidate fails at its last repetition.
    """
    known = bracket(track, records)
    now = step(track, known)
    probes = 0 if now.rate is None else _probes(track, known)
    ended = now.rate is None and following(track, repetitions, records) is None
    most = 1 + int(track["rule"]["lower_steps_max"])
    return 0 if ended else TRIES * (probes + most * repetitions)


def expected(track: Track, repetitions: int, records: Records) -> int:
    """Return the likely number of measurements left."""
    known = bracket(track, records)
    if step(track, known).rate is not None:
        usual = _halvings(track, 1, 2) + USUAL_STEPS
        return min(_probes(track, known), usual) + repetitions
    item = candidate(track, records)
    if item is None or following(track, repetitions, records) is None:
        return 0
    return max(1, repetitions - len(measured(item["cell_id"], records)))


def tried(track: Track, records: Records) -> list[Any]:
    """Return the items of every probe and of every rate to confirm."""
    item = track["cells"][0]
    found = step(track, bracket(track, records)).found
    confirmed = [] if found is None else candidates(track, found)
    return [
        *(at(item, rate, "probe") for rate in rates(track, records)),
        *(at(item, rate, "measure") for rate in confirmed),
    ]


def done(track: Track, records: Records) -> int:
    """Return how many of its measurements did not fail, probes included."""
    return sum(len(measured(item["cell_id"], records)) for item in tried(track, records))
