"""All kinds of runs, and which of them a run is of."""

from collections.abc import Mapping
from pathlib import Path

from loadlab.kinds.certificate.kind import CertificateKind
from loadlab.kinds.gate.kind import GateKind
from loadlab.kinds.kind import Kind
from loadlab.kinds.lesson.kind import LessonKind
from loadlab.kinds.matrix.kind import MatrixKind
from loadlab.kinds.single.kind import SingleKind
from loadlab.kinds.study.kind import StudyKind
from loadlab.model import OptionValue
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Plan
from loadlab.plan.user_options import Request
from loadlab.run.run_dir import RunDir

# A run is of the first that it may be of.
KINDS: list[Kind] = [
    MatrixKind(),
    GateKind(),
    LessonKind(),
    CertificateKind(),
    StudyKind(),
    SingleKind(),
]


def of_request(request: Request, options: Mapping[str, OptionValue]) -> Kind:
    """Return the kind that is requested; ``options``: main variables with a value."""
    return next(kind for kind in KINDS if kind.is_requested(request, options))


def of_plan(plan: Plan) -> Kind:
    """Return the kind of a planned run."""
    return next(kind for kind in KINDS if kind.is_planned(plan))


def of_run(run_dir: Path) -> Kind:
    """Return the kind of a run; the last where it has no plan.json."""
    is_planned = RunDir(run_dir).plan.exists()
    return of_plan(plan_document.read(run_dir).plan) if is_planned else KINDS[-1]
