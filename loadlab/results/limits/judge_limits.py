"""Name the limit of a cell. loadlab/report/words/limits/ has the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from loadlab.model import Cell, CellLimit, PySpyProfile, Reason, Repetition, TimePart
from loadlab.results.limits import core_limits, outside_limits, wait_limits
from loadlab.results.limits import cpu_account as account
from loadlab.results.limits.limit_evidence import Check, Evidence, check
from loadlab.run.methods import LimitRule, limit_rule

Rule: TypeAlias = Callable[[Evidence], Check | list[Check] | None]

# In the order in which they count. A rule without its evidence returns None or nothing.
RULES: tuple[tuple[tuple[str, ...], Rule], ...] = (
    (("neighbour",), outside_limits.neighbour),
    (("client",), outside_limits.client),
    (("none",), outside_limits.none),
    # Before what it leads to.
    (("memory",), core_limits.memory),
    (("nginx_connections",), wait_limits.nginx_connections),
    (("open_files",), wait_limits.open_files),
    (("database_connections",), wait_limits.database_connections),
    (("syn_queue",), wait_limits.syn_queue),
    (("accept_queue",), wait_limits.accept_queue),
    (("upstream_closed",), wait_limits.upstream_closed),
    (
        ("nginx_cpu", "worker_cpu", "database_cpu", "kernel_softirq", "cores_busy"),
        core_limits.full,
    ),
    (("delayed_ack",), wait_limits.delayed_ack),
    (("database_lock", "pool_wait", "disk"), wait_limits.database),
    (("link",), outside_limits.link),
    (("too_few_threads",), wait_limits.too_few_threads),
    (("connections",), outside_limits.connections),
)
CODES = (*(code for codes, _ in RULES for code in codes), "unknown")
# Of the database, which not every cell has.
_OF_DATABASE = frozenset(
    {"database_connections", "database_cpu", "database_lock", "pool_wait", "disk"}
)
_OF_NGINX = frozenset({"nginx_connections", "nginx_cpu", "open_files", "upstream_closed"})


class Judged(NamedTuple):
    """The limit of one repetition, what was looked for before it and after it, and what could not
    be."""

    limit: Reason
    ruled_out: list[Reason]
    unrecorded: list[str]
    mean_us: float | None
    account: list[TimePart]


def judge(cell: Cell, rep: Repetition, rule: LimitRule | None = None) -> Judged | None:
    """Return the limit of a repetition; None where the repetition failed."""
    if rep.error is not None or rep.telemetry is None:
        return None
    evidence = Evidence(cell, rep, rep.telemetry.server, rep.telemetry.client, rule or limit_rule())
    checks: list[Check] = []
    unrecorded: list[str] = []
    for codes, look in RULES:
        result = look(evidence)
        own_checks = result if isinstance(result, list) else [result] if result else []
        checks += own_checks
        seen = {own_check.evidence.code for own_check in own_checks}
        unrecorded += [code for code in codes if code not in seen and _applies(code, evidence)]
    hit = next((candidate for candidate in checks if candidate.found), None)
    limit = (hit or check("unknown", True, evidence.p99_us)).evidence
    return Judged(
        limit,
        [] if limit.code == "none" else [other.evidence for other in checks if not other.found],
        unrecorded,
        evidence.mean_us,
        account.parts(evidence),
    )


def _applies(code: str, evidence: Evidence) -> bool:
    """Return whether a limit can be that of the cell at all."""
    if code in _OF_DATABASE:
        return evidence.database is not None
    if code in _OF_NGINX:
        return evidence.proxied
    if code == "worker_cpu":
        # Without an application nginx answers by itself.
        return evidence.cell.transport != "none"
    return code not in ("none", "connections", "delayed_ack", "too_few_threads")


def of_cell(cell: Cell, repetitions: Sequence[Repetition]) -> CellLimit | None:
    """Return the limit of a cell: that of most of its valid repetitions, or of all of them.

    Its evidence is that of the repetition in the middle of those that agree.
    """
    valid = [rep for rep in repetitions if rep.validity.valid]
    judged = [
        judgement for rep in valid or repetitions if (judgement := judge(cell, rep)) is not None
    ]
    if not judged:
        return None
    codes = Counter(rep_limit.limit.code for rep_limit in judged)
    code, agree = max(codes.items(), key=lambda item: (item[1], -CODES.index(item[0])))
    alike = sorted(
        (one for one in judged if one.limit.code == code),
        key=lambda judged_repetition: _number(judged_repetition.limit.value),
    )
    middle = alike[len(alike) // 2]
    return CellLimit(
        limit=middle.limit,
        agree=agree,
        of=len(judged),
        ruled_out=middle.ruled_out,
        unrecorded=middle.unrecorded,
        mean_us=middle.mean_us,
        account=middle.account,
    )


def profiled(limit: CellLimit, profile: PySpyProfile | None) -> CellLimit:
    """Return the limit of a cell with what the profile of one of its workers adds to the evidence.

    That is ``gil``: the fraction of the time in which a thread of a full worker held the GIL.
    """
    if profile is None or profile.gil_fraction is None or limit.limit.code != "worker_cpu":
        return limit
    facts = {**limit.limit.facts, "gil": profile.gil_fraction}
    return replace(limit, limit=replace(limit.limit, facts=facts))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
