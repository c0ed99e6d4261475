"""matrix.json: the best candidate, those within its noise, and what each costs.

What the rounds measured chose the finalists, so it does not decide between them: the contenders are
compared by the blocks after the rounds alone, with the intervals of stats/sequential.py.
All pairs share the error rate, as the best is not named beforehand.
"""

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import asdict

from loadlab.model import MatrixLead, MatrixRow, MatrixVerdict, PlannedCandidate, Reason, Repetition
from loadlab.plan import records as recorded
from loadlab.plan.modes.matrix_order import Matrix, Standing, goodput_turns, goodputs, ranked
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records
from loadlab.results import metrics
from loadlab.run.methods import comparison_rule
from loadlab.stats import inference, sequential
from loadlab.stats.inference import Estimate

ByBlock = Mapping[int, float]
# What a row has besides goodput.
_COMPARED = ("p99", "memory")


class Compared(Struct, kw_only=True, frozen=True):
    """The contenders after some blocks."""

    best: str | None  #: The one with the most goodput; None without any.
    #: Of it and those within its noise the one with the fewest workers x threads.
    chosen: str | None
    leads: list[MatrixLead]  #: The best over each other.
    over: dict[str, MatrixLead]  #: The chosen over each other, name -> lead.
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
    turns: sequential.Turns  #: of the keys of all of these

    @property
    def share(self) -> float:
        """The share of the error rate of one pair of contenders (Bonferroni)."""
        return sequential.ERROR_RATE / max(1, len(self.values) * (len(self.values) - 1) // 2)

    @property
    def twin(self) -> Estimate:
        """Return the difference of the A/A control."""
        return self._compare(self.own, {}, self.control)

    def over(self, name: str, other: str) -> Estimate:
        """Return by which fraction one contender has more than another.

        The control counts wherever its base is one of both.
        """
        above, below = self.values[name], self.values[other]
        if name == self.first:
            return _inverse(self._compare(above, self.control, below))
        return self._compare(below, self.control if other == self.first else {}, above)

    def _compare(self, base: ByBlock, control: ByBlock, head: ByBlock) -> Estimate:
        compared = sequential.compare(base, control, head, self.share, self.turns, relative=True)
        return compared.head


def _inverse(less: Estimate) -> Estimate:
    """Return 1 / (1 + x) - 1 of an estimate."""
    bounds = (less.value, less.high, less.low)
    return Estimate(*(None if bound is None else 1 / (1 + bound) - 1 for bound in bounds))


def matrix_of(plan: Plan) -> Matrix:
    """Return the matrix of a plan that has one."""
    (matrix,) = (experiment for experiment in plan.experiments if isinstance(experiment, Matrix))
    return matrix


def build(run_id: str, plan: Plan, kept: Records) -> MatrixVerdict:
    """Return the document by all blocks of the records. The plan has a matrix."""
    assert plan.matrix is not None
    matrix = matrix_of(plan)
    now = matrix.standing(kept)
    compared = compare(plan, kept, now)
    candidates = {candidate.name: candidate for candidate in plan.matrix.candidates}
    chosen = candidates[compared.chosen] if compared.chosen else None
    rows = _rows(plan, matrix, now, kept)
    measured = (item.cell_id for item in matrix.known_items(kept))
    return MatrixVerdict(
        run_id=run_id,
        cores=plan.matrix.cores,
        best=compared.best,
        chosen=compared.chosen,
        leads=compared.leads,
        over_own_default=compared.over.get(chosen.own_default or "") if chosen else None,
        over_rule=compared.over.get(chosen.rule or "") if chosen else None,
        noise_floor=compared.noise_floor,
        margin=comparison_rule().margin,
        error_rate=sequential.ERROR_RATE,
        candidates=sorted(rows, key=lambda row: -(row.goodput or 0.0)),
        blocks=_blocks(matrix, now, kept),
        measured_s=recorded.lasted_s(measured, kept),
        budget_s=plan.matrix.budget_s,
    )


def _after_rounds(matrix: Matrix, kept: Records) -> range:
    return range(sum(matrix.rounds) + 1, recorded.latest_block(kept) + 1)


def _blocks(matrix: Matrix, now: Standing, kept: Records) -> int:
    """Return how many blocks after the rounds have any contender."""
    after = _after_rounds(matrix, kept)
    return len({at for item in now.contenders for at in goodputs(item.cell_id, kept, after)})


def compare(plan: Plan, kept: Records, now: Standing) -> Compared:
    """Return how the contenders compare by the blocks after the rounds.

    Before these there is no lead, and the best is that of the rounds so far.
    """
    assert plan.matrix is not None
    matrix = matrix_of(plan)
    by_id = {candidate.cell_id: candidate for candidate in plan.matrix.candidates}
    after = _after_rounds(matrix, kept)

    def measured(cell_id: str) -> ByBlock:
        return {at: x for at, x in goodputs(cell_id, kept, after).items() if x > 0}

    blocks_of = {by_id[item.cell_id].name: measured(item.cell_id) for item in now.contenders}
    values = {name: blocks for name, blocks in blocks_of.items() if blocks}
    if not values:
        going = [item for item in now.rounds[-1] if item.cell_id not in now.dropped]
        in_order = now.contenders or ranked(going, _all(kept), kept)
        leader = next(
            (item for item in in_order if any(goodputs(item.cell_id, kept, _all(kept)).values())),
            None,
        )
        name = by_id[leader.cell_id].name if leader else None
        return Compared(best=name, chosen=name, leads=[], over={}, noise_floor=None)
    first = now.finalists[0].cell_id
    sides = _Sides(
        values=values,
        first=by_id[first].name,
        own=measured(first),
        control=measured(now.control.cell_id) if now.control else {},
        turns=goodput_turns(kept, after),
    )
    best = _best(sides)
    candidates = {candidate.name: candidate for candidate in plan.matrix.candidates}
    leads = [_lead(sides, best, other) for other in values if other != best]
    near = sorted((lead for lead in leads if lead.within_noise), key=lambda lead: lead.value or 0.0)
    chosen = min(
        [best, *(lead.name for lead in near)],
        key=lambda name: candidates[name].workers * candidates[name].threads,
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
    gain_of = {origin: 0.0, **{name: gain for name, gain in gains.items() if gain is not None}}
    return max(gain_of, key=lambda name: gain_of[name])


def _lead(sides: _Sides, name: str, other: str) -> MatrixLead:
    margin = comparison_rule().margin
    estimate = sides.over(name, other)
    look = sequential.decide(estimate, estimate, sides.twin, margin, "higher")
    return MatrixLead(
        name=other,
        blocks=len(sides.values[name].keys() & sides.values[other].keys()),
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        answer=look.answer,
        reason=look.reason,
        is_open=look.is_open,
        within_noise=look.answer != "faster"
        and estimate.value is not None
        and estimate.value <= margin,
    )


def _rows(plan: Plan, matrix: Matrix, now: Standing, kept: Records) -> list[MatrixRow]:
    assert plan.matrix is not None
    candidates = plan.matrix.candidates
    reps = {candidate.cell_id: recorded.valid(candidate.cell_id, kept) for candidate in candidates}
    every = [*chain(*reps.values())]
    paths = {name: metrics.reading(name, every).path for name in _COMPARED}
    figures = {
        candidate.name: _figures(reps[candidate.cell_id], candidate.cell_id, kept, paths)
        for candidate in candidates
    }
    front = _front({name: figure for name, figure in figures.items() if None not in figure})
    return [
        MatrixRow(
            **asdict(candidate),
            last_round=_last_round(candidate.cell_id, now),
            contends=candidate.cell_id in {item.cell_id for item in now.contenders},
            blocks=len(goodputs(candidate.cell_id, kept, _all(kept))),
            goodput=figures[candidate.name][0],
            p99_us=figures[candidate.name][1],
            memory_bytes=figures[candidate.name][2],
            on_front=candidate.name in front,
            out=_out(candidate, now, figures[candidate.name][0]),
        )
        for candidate in candidates
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
        for name in _COMPARED
    ]
    p99, memory = (statistics.median(values) if values else None for values in costs)
    return median, p99, memory


def _front(figures: Mapping[str, tuple[float | None, float | None, float | None]]) -> set[str]:
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
        at for at, items in enumerate(now.rounds, start=1) if cell_id in {i.cell_id for i in items}
    )


def _out(candidate: PlannedCandidate, now: Standing, goodput: float | None) -> Reason | None:
    """Return why a candidate is not measured further; None where it is or was to the end."""
    last = _last_round(candidate.cell_id, now)
    if candidate.cell_id in now.dropped:
        return Reason(code="candidate_failed", facts={"error": now.dropped[candidate.cell_id]})
    if candidate.cell_id in {item.cell_id for item in now.contenders}:
        return None
    if last == len(now.rounds) and not now.is_final:
        return None
    if goodput is None:
        return Reason(code="candidate_void", facts={"round": last})
    left = len(now.rounds[last] if last < len(now.rounds) else now.finalists)
    return Reason(
        code="candidate_behind", value=last, facts={"left": left, "of": len(now.rounds[last - 1])}
    )
