"""matrix.json: the best candidate, those within its noise, and what each costs.

What the rounds measured chose the finalists, so it does not decide between them: the contenders are
compared by the blocks after the rounds alone, with the confidence sequences of stats/sequential.py.
All pairs share the error rate, as the best is not named beforehand.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import asdict

from loadlab.model import MatrixLead, MatrixRow, MatrixVerdict, PlannedCandidate, Reason, Repetition
from loadlab.plan import records as recorded
from loadlab.plan.modes.experiment_types import Matrix
from loadlab.plan.modes.matrix_order import Standing, goodputs, ranked
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records
from loadlab.results import metrics
from loadlab.run.methods import comparison_rule
from loadlab.stats import inference, sequential
from loadlab.stats.inference import Estimate

ByBlock = Mapping[int, float]
# What a row has besides goodput.
_COSTS = ("p99", "memory")


class Compared(Struct, kw_only=True, frozen=True):
    """The contenders after some blocks.

    - best: the one with the most goodput; None without any
    - chosen: of it and those within its noise the one with the fewest workers x threads
    - leads: the best over each other; over: the chosen over each other, name -> lead
    """

    best: str | None
    chosen: str | None
    leads: list[MatrixLead]
    over: dict[str, MatrixLead]
    noise_floor: float | None

    @property
    def is_open(self) -> bool:
        """Return whether more blocks may decide how a contender compares with the best."""
        return any(lead.is_open for lead in self.leads)


class _Sides(Struct, kw_only=True, frozen=True):
    """Goodput by block of each contender; that of the best of the rounds, which may have been
    dropped since, and of its control."""

    values: Mapping[str, ByBlock]
    first: str
    own: ByBlock
    control: ByBlock

    @property
    def share(self) -> float:
        """The share of the error rate of one pair of contenders (Bonferroni)."""
        return sequential.ERROR_RATE / max(1, len(self.values) * (len(self.values) - 1) // 2)

    @property
    def twin(self) -> Estimate:
        """Return the difference of the A/A control."""
        found = sequential.compare(self.own, {}, self.control, self.share, relative=True)
        return found.head

    def over(self, one: str, other: str) -> Estimate:
        """Return by which fraction one contender has more than another.

        The control counts wherever its base is one of both.
        """
        above, below = self.values[one], self.values[other]
        if one == self.first:
            less = sequential.compare(above, self.control, below, self.share, relative=True).head
            return _inverse(less)
        control = self.control if other == self.first else {}
        return sequential.compare(below, control, above, self.share, relative=True).head


def _inverse(less: Estimate) -> Estimate:
    """Return 1 / (1 + x) - 1 of an estimate."""
    several = (less.value, less.high, less.low)
    return Estimate(*(None if one is None else 1 / (1 + one) - 1 for one in several))


def matrix_of(plan: Plan) -> Matrix:
    """Return the matrix of a plan that has one."""
    (found,) = (one for one in plan.experiments if isinstance(one, Matrix))
    return found


def build(run_id: str, plan: Plan, kept: Records) -> MatrixVerdict:
    """Return the document by all blocks of the records. The plan has a matrix."""
    assert plan.matrix is not None
    one = matrix_of(plan)
    now = one.standing(kept)
    found = compare(plan, kept, now)
    named = {each.name: each for each in plan.matrix.candidates}
    chosen = named[found.chosen] if found.chosen else None
    rows = _rows(plan, one, now, kept)
    measured = (item.cell_id for item in one.known_items(kept))
    return MatrixVerdict(
        run_id=run_id,
        cores=plan.matrix.cores,
        best=found.best,
        chosen=found.chosen,
        leads=found.leads,
        over_own_default=found.over.get(chosen.own_default or "") if chosen else None,
        over_rule=found.over.get(chosen.rule or "") if chosen else None,
        noise_floor=found.noise_floor,
        margin=comparison_rule().margin,
        error_rate=sequential.ERROR_RATE,
        candidates=sorted(rows, key=lambda row: -(row.goodput or 0.0)),
        blocks=_blocks(one, now, kept),
        measured_s=recorded.lasted_s(measured, kept),
        budget_s=plan.matrix.budget_s,
    )


def _after_rounds(one: Matrix, kept: Records) -> range:
    return range(sum(one.rounds) + 1, recorded.latest_block(kept) + 1)


def _blocks(one: Matrix, now: Standing, kept: Records) -> int:
    """Return how many blocks after the rounds have any contender."""
    after = _after_rounds(one, kept)
    return len({at for item in now.contenders for at in goodputs(item.cell_id, kept, after)})


def compare(plan: Plan, kept: Records, now: Standing) -> Compared:
    """Return how the contenders compare by the blocks after the rounds.

    Before these there is no lead, and the best is that of the rounds so far.
    """
    assert plan.matrix is not None
    one = matrix_of(plan)
    by_id = {each.cell_id: each for each in plan.matrix.candidates}
    after = _after_rounds(one, kept)

    def measured(cell_id: str) -> ByBlock:
        return {at: x for at, x in goodputs(cell_id, kept, after).items() if x > 0}

    several = {by_id[item.cell_id].name: measured(item.cell_id) for item in now.contenders}
    values = {name: found for name, found in several.items() if found}
    if not values:
        going = [item for item in now.rounds[-1] if item.cell_id not in now.dropped]
        leader = next(iter(now.contenders or ranked(going, _all(kept), kept)), None)
        name = by_id[leader.cell_id].name if leader else None
        return Compared(best=name, chosen=name, leads=[], over={}, noise_floor=None)
    first = now.finalists[0].cell_id
    sides = _Sides(
        values=values,
        first=by_id[first].name,
        own=measured(first),
        control=measured(now.control.cell_id) if now.control else {},
    )
    best = _best(sides)
    named = {each.name: each for each in plan.matrix.candidates}
    leads = [_lead(sides, best, other) for other in values if other != best]
    near = sorted((lead for lead in leads if lead.within_noise), key=lambda lead: lead.value or 0.0)
    chosen = min(
        [best, *(lead.name for lead in near)],
        key=lambda name: named[name].workers * named[name].threads,
    )
    return Compared(
        best=best,
        chosen=chosen,
        leads=leads,
        over={name: _lead(sides, chosen, name) for name in values if name != chosen},
        noise_floor=inference.noise_floor([sides.twin]),
    )


def _all(kept: Records) -> range:
    return range(1, recorded.latest_block(kept) + 1)


def _best(sides: _Sides) -> str:
    """Return the contender that is most above the best of the rounds, which may be that itself."""
    origin = sides.first if sides.first in sides.values else next(iter(sides.values))
    gains = {name: sides.over(name, origin).value for name in sides.values if name != origin}
    known = {origin: 0.0, **{name: gain for name, gain in gains.items() if gain is not None}}
    return max(known, key=lambda name: known[name])


def _lead(sides: _Sides, one: str, other: str) -> MatrixLead:
    margin = comparison_rule().margin
    found = sides.over(one, other)
    look = sequential.decide(found, sides.twin, margin, "higher")
    return MatrixLead(
        name=other,
        blocks=len(sides.values[one].keys() & sides.values[other].keys()),
        value=found.value,
        low=found.low,
        high=found.high,
        answer=look.answer,
        reason=look.reason,
        is_open=look.is_open,
        within_noise=look.answer != "faster" and found.value is not None and found.value <= margin,
    )


def _rows(plan: Plan, one: Matrix, now: Standing, kept: Records) -> list[MatrixRow]:
    assert plan.matrix is not None
    named = plan.matrix.candidates
    reps = {each.cell_id: recorded.valid(each.cell_id, kept) for each in named}
    every = [*chain(*reps.values())]
    paths = {name: metrics.reading(name, every).path for name in _COSTS}
    figures = {each.name: _figures(reps[each.cell_id], each.cell_id, kept, paths) for each in named}
    front = _front({name: found for name, found in figures.items() if None not in found})
    return [
        MatrixRow(
            **asdict(each),
            last_round=_last_round(each.cell_id, now),
            contends=each.cell_id in {item.cell_id for item in now.contenders},
            blocks=len(goodputs(each.cell_id, kept, _all(kept))),
            goodput=figures[each.name][0],
            p99_us=figures[each.name][1],
            memory_bytes=figures[each.name][2],
            on_front=each.name in front,
            out=_out(each, now, figures[each.name][0]),
        )
        for each in named
    ]


def _figures(
    reps: Sequence[Repetition], cell_id: str, kept: Records, paths: Mapping[str, str]
) -> tuple[float | None, float | None, float | None]:
    """Return the medians of goodput, p99 and memory."""
    by_block = goodputs(cell_id, kept, _all(kept))
    median = statistics.median(by_block.values()) if by_block else None
    cell = kept[cell_id].cell if cell_id in kept else None
    load = cell.load if cell else None
    costs = [
        [x for rep in reps if load and (x := metrics.value(rep, load, paths[name])) is not None]
        for name in _COSTS
    ]
    p99, memory = (statistics.median(several) if several else None for several in costs)
    return median, p99, memory


def _front(
    figures: Mapping[str, tuple[float | None, float | None, float | None]],
) -> set[str]:
    """Return the names for which no other is at least as good in all and better in one (Pareto)."""
    signed = {
        name: (-(goodput or 0.0), p99 or 0.0, memory or 0.0)
        for name, (goodput, p99, memory) in figures.items()
    }

    def beaten(name: str) -> bool:
        own = signed[name]
        return any(
            other != own and all(x <= y for x, y in zip(other, own, strict=True))
            for other in signed.values()
        )

    return {name for name in signed if not beaten(name)}


def _last_round(cell_id: str, now: Standing) -> int:
    return max(
        at for at, those in enumerate(now.rounds, start=1) if cell_id in {i.cell_id for i in those}
    )


def _out(one: PlannedCandidate, now: Standing, goodput: float | None) -> Reason | None:
    """Return why a candidate is not measured further; None where it is or was to the end."""
    last = _last_round(one.cell_id, now)
    if one.cell_id in now.dropped:
        return Reason(code="candidate_failed", facts={"error": now.dropped[one.cell_id]})
    if one.cell_id in {item.cell_id for item in now.contenders}:
        return None
    if last == len(now.rounds) and not now.is_final:
        return None
    if goodput is None:
        return Reason(code="candidate_void", facts={"round": last})
    left = len(now.rounds[last] if last < len(now.rounds) else now.finalists)
    return Reason(
        code="candidate_behind", value=last, facts={"left": left, "of": len(now.rounds[last - 1])}
    )
