"""Name the limit of a cell. loadlab/reasons/limit_reasons.py has its rows, in their order."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from loadlab.model import Cell, CellLimit, CellSummary, PySpyProfile, Repetition, Statistics
from loadlab.reasons.limit_reasons import LIMITS, THRESHOLDS, LimitRow
from loadlab.results import tail
from loadlab.results.limits import core_limits, load_limits, wait_limits
from loadlab.results.limits.limit_evidence import Check, Evidence, LimitCheck, check

RULES: tuple[LimitCheck, ...] = (*load_limits.RULES, *core_limits.RULES, *wait_limits.RULES)
# These leave open what more connections would bring.
_BEFORE_LOAD = ("neighbour", "client")


def judge(cell: Cell, rep: Repetition) -> CellLimit | None:
    """Return the limit of a repetition; None where the repetition failed."""
    if rep.error is not None or rep.telemetry is None:
        return None
    evidence = Evidence(cell, rep, rep.telemetry.server, rep.telemetry.client)
    order = list(LIMITS)
    checks = sorted(_checks(evidence), key=lambda candidate: order.index(candidate.evidence.code))
    looked_for = {candidate.evidence.code for candidate in checks}
    unrecorded = [
        code for code, row in LIMITS.items() if code not in looked_for and _applies(row, evidence)
    ]
    hit = next((candidate for candidate in checks if candidate.is_limit), None)
    limit = (hit or check("unknown", True, evidence.p99_us)).evidence
    return CellLimit(
        limit=limit,
        agree=1,
        of=1,
        ruled_out=[]
        if limit.code == "none"
        else [other.evidence for other in checks if not other.is_limit],
        unrecorded=unrecorded,
        mean_us=evidence.mean_us,
        account=evidence.account,
    )


def _checks(evidence: Evidence) -> Iterator[Check]:
    for look_for in RULES:
        result = look_for(evidence)
        if result is not None:
            yield from result if isinstance(result, list) else [result]


def _applies(row: LimitRow, evidence: Evidence) -> bool:
    """Return whether a limit can be that of the cell at all."""
    parts = {
        "hosts": True,
        "reverse_proxy": not evidence.cell.direct,
        # Without an application nginx answers by itself.
        "application": evidence.cell.transport != "none",
        "database": evidence.database is not None,
    }
    return row.part_of is not None and parts[row.part_of]


def of_cell(cell: Cell, repetitions: Sequence[Repetition]) -> CellLimit | None:
    """Return the limit of a cell: that of most of its valid repetitions, or of all of them."""
    return _of_most([judge(cell, rep) for rep in _valid(repetitions)])


def of_closed_loops(cell: Cell, repetitions: Sequence[Repetition]) -> CellLimit | None:
    """Return the limit of the closed loops after a load of lanes, which is looked for in the
    server's cores alone; None where they have no record of these."""
    return _of_most([_in_closed_loops(cell, rep) for rep in _valid(repetitions)])


def _in_closed_loops(cell: Cell, rep: Repetition) -> CellLimit | None:
    own = rep.saturated
    if own is None or own.server is None or not own.started or not own.finished or not own.turns:
        return None
    length = own.finished - own.started
    closed = replace(cell, load=replace(cell.load, mode="closed", rate=None))
    answers = max(1, round(own.goodput * own.turns * length))
    loop = replace(rep, rate_achieved=own.goodput, duration_s=length, responses=answers)
    evidence = Evidence(closed, loop, own.server, own.server)
    order = list(LIMITS)
    checks = sorted(core_limits.full(evidence), key=lambda own: order.index(own.evidence.code))
    hit = next((own.evidence for own in checks if own.is_limit), None)
    return CellLimit(
        limit=hit or check("unknown", True).evidence,
        agree=1,
        of=1,
        ruled_out=[own.evidence for own in checks if not own.is_limit],
        unrecorded=[],
        mean_us=None,
        account=[],
    )


def _valid(repetitions: Sequence[Repetition]) -> Sequence[Repetition]:
    return [rep for rep in repetitions if rep.validity.valid] or repetitions


def _of_most(limits: Sequence[CellLimit | None]) -> CellLimit | None:
    """Return the limit of most repetitions.

    Its evidence is that of the repetition in the middle of those that agree.
    """
    judged = [limit for limit in limits if limit is not None]
    if not judged:
        return None
    codes = Counter(own.limit.code for own in judged)
    code, agree = max(codes.items(), key=lambda item: (item[1], -list(LIMITS).index(item[0])))
    alike = sorted(
        (own for own in judged if own.limit.code == code), key=lambda own: _number(own.limit.value)
    )
    return replace(alike[len(alike) // 2], agree=agree, of=len(judged))


def pooled(limit: CellLimit | None, statistics: Statistics) -> CellLimit | None:
    """Return the limit of a cell; where it is none, with the p99 and the failed requests that the
    cell's statistics show, in place of one repetition's."""
    if limit is None or limit.limit.code != "none":
        return limit
    slowest = tail.slowest(statistics)
    if slowest.us is None or slowest.us > _number(limit.limit.limit):
        return limit
    failed = (statistics.requests or 0) - (statistics.ok or 0) - (statistics.aborted or 0)
    facts = {**limit.limit.facts, "failed": max(0, failed), "latency": slowest.name}
    if slowest.bound:
        facts["bound"] = slowest.bound
    return replace(limit, limit=replace(limit.limit, value=slowest.us, facts=facts))


def profiled(limit: CellLimit | None, profile: PySpyProfile | None) -> CellLimit | None:
    """Return the limit of a cell with what the profile of one of its workers adds to the evidence.

    That is ``gil``: the fraction of the time in which a thread of a full worker held the GIL.
    """
    if limit is None or profile is None or profile.gil_fraction is None:
        return limit
    if limit.limit.code != "worker_cpu":
        return limit
    facts = {**limit.limit.facts, "gil": profile.gil_fraction}
    return replace(limit, limit=replace(limit.limit, facts=facts))


def of_ceiling(cell: CellSummary, cross_check: CellSummary | None) -> CellLimit | None:
    """Return the limit of a closed loop: the load, where twice its connections brought more right
    answers per second; else its own, with the load ruled out.

    More is a cross-check above the fastest of the valid repetitions, which is their noise, by more
    than ``doubled``. The limit stays as it is where one of both has no valid repetition.
    """
    limit, load = cell.limit, cell.cell.load
    if limit is None or cross_check is None or load.mode != "closed":
        return limit
    fastest, twice = _fastest(cell), _fastest(cross_check)
    if not fastest or not twice or limit.limit.code in _BEFORE_LOAD:
        return limit
    growth, growth_max = twice / fastest - 1, THRESHOLDS.doubled
    is_limit, evidence = check(
        "connections",
        growth > growth_max,
        growth,
        growth_max,
        connections=load.connections,
        fastest=fastest,
        twice=twice,
    )
    others = [reason for reason in limit.ruled_out if reason.code != "connections"]
    if is_limit:
        return replace(limit, limit=evidence, ruled_out=others)
    if limit.limit.code == "connections":
        limit = replace(limit, limit=check("unknown", True).evidence)
    return replace(limit, ruled_out=[*others, evidence])


def _fastest(cell: CellSummary) -> float:
    """Return the most right answers per second of a valid repetition; 0 without one."""
    valid = (rep for rep in cell.repetitions if rep.validity.valid)
    return max((rep.goodput or 0.0 for rep in valid), default=0.0)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
