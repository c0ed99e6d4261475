"""Find the run that a stage plans for: one named, the latest, or a new one."""

from loadlab.hosts import identity
from loadlab.kinds import all_kinds
from loadlab.kinds.kind import ResolvedRun
from loadlab.kinds.study.study_files import FOLDERS, filled
from loadlab.model import GivenOptions
from loadlab.plan import check_options, records
from loadlab.plan import plan_document as plans
from loadlab.plan.load_options import load_files
from loadlab.plan.user_options import Request
from loadlab.run.catalog import runs
from loadlab.run.errors import PlanError, ResultError, SchemaError
from loadlab.run.run_dir import LATEST, RunDir


def resolve_run(request: Request) -> ResolvedRun:
    """Return the run named, the latest unless a new one begins, or a new one.

    Raises PlanError where it must exist and does not, and where it has measured on another kind of
    hosts.
    """
    run_id = named_run(request)
    _refuse_absent_run(request, run_id)
    resumes = request.begin or request.needs_framework
    if run_id is None or not (
        resumes or request.needs_run or _says_what_to_measure(request.given_options)
    ):
        # Hosts can be untuned whatever lab began the latest run.
        return ResolvedRun(run_id=run_id, recorded=None, records={}, options=request.given_options)
    run_dir = request.root / "results" / run_id
    try:
        recorded = plans.read(run_dir) if RunDir(run_dir).plan.exists() else None
    except SchemaError:
        raise
    except ResultError as problem:
        raise PlanError(
            f"run_id: the run '{run_id}' cannot be read: {problem}. Give another -e run_id=."
        ) from None
    measured = records.load(run_dir)
    # Check the hosts first: on other hosts a later check could fail for a misleading reason.
    if resumes and measured and recorded and recorded.plan.host_kind != request.host_kind:
        raise PlanError(
            f"run_id: '{run_id}' was begun on {recorded.plan.host_kind}, and would go on with "
            f"{request.host_kind}. {identity.remedy(recorded.inventory_args)}"
        )
    kind = all_kinds.of_request(request, filled(request.given_options))
    options = kind.own_options(request, run_id, recorded)
    if not resumes:
        options = request.given_options
    elif recorded is not None and not _says_what_to_measure(options):
        own = filled(options)
        before = filled(recorded.plan.given_options)
        kept = {name: before[name] for name in before.keys() - load_files.replaced_by(own)}
        options = {**options, **kept, **own}
    return ResolvedRun(run_id=run_id, recorded=recorded, records=measured, options=options)


def named_run(request: Request) -> str | None:
    """Return the run_id that was given, or that of the latest run where none begins; else None."""
    run_id = filled(request.given_options).get("run_id")
    if run_id is not None:
        return check_options.run_id(str(run_id))
    latest = request.root / "results" / LATEST
    return latest.resolve().name if not request.begin and latest.exists() else None


def _refuse_absent_run(request: Request, run_id: str | None) -> None:
    """Raise PlanError where the run does not exist and nothing given starts one.

    A run is started by what to measure or, in a stage that measures nothing, by what to tune.
    """
    results = request.root / "results"
    if run_id is not None and RunDir(results / run_id).plan.exists():
        return
    options = filled(request.given_options)
    begins = ["app", *(kind.subject for kind in all_kinds.KINDS)]
    begins += [] if request.begin else ["tuning", "network"]
    playbook = "" if request.begin else "lab.yml and "
    how = f"{playbook}{all_kinds.of_request(request, {}).example}"
    if "run_id" in options and (request.needs_run or not any(name in options for name in begins)):
        raise PlanError(
            f"run_id: '{run_id}' is not in results/. {runs(results)} Give another -e run_id=, or "
            f"begin this one with {how}."
        )
    if request.needs_run:
        raise PlanError(
            f"run_id: none was given, and results/latest names no run. {runs(results)} Give one "
            f"with -e run_id=<run_id>, or begin one with {how}."
        )


def _says_what_to_measure(options: GivenOptions) -> bool:
    return any(name in filled(options) for name in ("framework", "app", *FOLDERS))
