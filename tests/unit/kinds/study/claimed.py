"""Cells and statements on them, judged."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from loadlab.kinds.study import analyse as claims_json
from loadlab.kinds.study import judge_claims
from loadlab.kinds.study.sampling import Level
from loadlab.kinds.study.words import REASONS
from loadlab.model import (
    CellSummary,
    Claim,
    ClaimPart,
    Claims,
    ClaimStatement,
    PlannedStudy,
    PublishedFigures,
    PySpyProfile,
    StudyClaim,
    StudyErratum,
    StudyPublication,
    Summary,
)
from loadlab.report import words
from loadlab.run import documents
from tests.unit import builders

Kind: TypeAlias = Literal["study", "lesson"]


def cell(*goodputs: float, valid: bool = True, connections: int = 8, **more: Any) -> CellSummary:
    """A cell of summary.json with a repetition for each goodput; the rate asked for is 100."""
    validity = builders.valid() if valid else builders.void("steal")
    reps = [
        builders.repetition(repetition=number, goodput=one, validity=validity, **more)
        for number, one in enumerate(goodputs, 1)
    ]
    load = builders.load(rate=100, connections=connections)
    return builders.cell_summary("cell", reps, builders.cell(load=load))


def statement(**fields: Any) -> ClaimStatement:
    return ClaimStatement(**{"metric": "goodput", **fields})


def judge(
    claim: ClaimStatement | Sequence[ClaimStatement],
    cells: dict[str, CellSummary],
    kind: Kind = "study",
    controls: Sequence[judge_claims.Control] = (),
) -> Claim:
    several = [claim] if isinstance(claim, ClaimStatement) else list(claim)
    named = {name: [Level(one)] for name, one in cells.items()}
    return judge_claims.judge(StudyClaim(statement="so", all=several), named, kind, (), controls)


def part(found: Claim) -> ClaimPart:
    """The only part of a judged claim."""
    (one,) = found.parts
    assert one.outcome == found.outcome
    return one


def why(one: ClaimPart) -> str:
    return words.reason(one.reason, REASONS.rows) if one.reason else ""


def known(number: float | None) -> float:
    assert number is not None
    return number


AGAIN = cell(102, 99, 104, 101, 104.5)

FAST, SLOW = cell(100, 101, 102, 103, 104), cell(50, 51, 52, 53, 54)


def judged(*found: Claim) -> Claims:
    return replace(claims_json.build(builders.summary(), STUDY), claims=list(found), unmeasured=[])


def control(factor: float, server: str = "server") -> judge_claims.Control:
    """A cell and its A/A control, so many times as fast and on this host pair."""
    one, other = (cell(*(f * n for n in (100, 101, 102, 103, 104))) for f in (1, factor))
    return one, on(server, other)


def on(server: str, one: CellSummary) -> CellSummary:
    return replace(one, repetitions=[replace(rep, server=server) for rep in one.repetitions])


GROUP = PublishedFigures(
    title="Round 1",
    where="page 3",
    reference="fast",
    cells={"fast": {"goodput": 400.0}, "slow": {"goodput": 100.0}, "gone@8": {"goodput": 7.0}},
)

MISTAKE: dict[str, Any] = {"mistake": "w", "printed": "9", "corrected": "8"}

STUDY = builders.planned_study(
    name="x",
    scale="local",
    description="d",
    claims=[StudyClaim(statement="so", all=[statement(ratio=["fast", "slow"], at_least=1.5)])],
    cells={"fast": ["fast"], "slow": ["slow"], "gone": ["gone-1", "gone-8"]},
    publication=StudyPublication(
        question="Which?",
        source={"title": "t", "date": "2015", "url": "https://example.org"},
        settings=[],
        rates=[],
        figures=[GROUP],
        errata=[StudyErratum(cell="slow", metric="goodput", **MISTAKE), StudyErratum(**MISTAKE)],
        differs=[],
    ),
)


def summary(**cells: CellSummary) -> Summary:
    found = [replace(one, cell_id=name.replace("_", "-")) for name, one in cells.items()]
    return replace(builders.summary(), cells=found)


def document(found: Summary, study: PlannedStudy = STUDY) -> Claims:
    """claims.json, which can be written."""
    judged = claims_json.build(found, study)
    documents.encode(judged)
    return judged


def profile(**changes: Any) -> PySpyProfile:
    recorded = PySpyProfile(samples=1000, idle_fraction=0.4, depth_median=None, native=True, top=[])
    return replace(recorded, **changes)


def part_of(claim: ClaimStatement, **profiles: PySpyProfile | None) -> ClaimPart:
    """The judged statement on cells that were measured, and once more with py-spy."""
    shown = {name: cell(10, 11, 12) for name in profiles}
    several = {
        f"{name}_spied": replace(cell(1, py_spy=one), purpose="py_spy", base=name)
        for name, one in profiles.items()
    }
    study = replace(STUDY, claims=[StudyClaim(statement="so", all=[claim])])
    return part(document(summary(**shown, **several), study).claims[0])
