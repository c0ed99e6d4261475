"""Find the run that a stage plans for: one named, the latest, or a new one."""

from __future__ import annotations

from msgspec import Struct

from loadlab.hosts import identity
from loadlab.kinds.lesson import plan, reader
from loadlab.kinds.study import study_files
from loadlab.model import GivenOptions, Reader
from loadlab.plan import check_options, records, user_options
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Run
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.run.catalog import runs
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import LATEST, RunDir


class ResolvedRun(Struct, kw_only=True, frozen=True):
    """The run to plan for, and what it has already.

    run_id is None for a new run without a name; recorded is None where it has no plan.json. given:
    the options given, on top of the recorded ones. reader: of a lesson's run.
    """

    run_id: str | None
    recorded: Run | None
    records: Records
    given: GivenOptions
    reader: Reader = Reader()


def resolve_run(ask: Request) -> ResolvedRun:
    """Return the run named, the latest unless a new one begins, or a new one.

    Raises PlanError where it must exist and does not, and where it has measured on another kind of
    hosts.
    """
    run_id = named_run(ask)
    _refuse_absent_run(ask, run_id)
    if run_id is None:
        return ResolvedRun(run_id=None, recorded=None, records={}, given=ask.given)
    resumes = ask.begin or ask.needs_framework
    if not (resumes or ask.needs_run or _says_what_to_measure(ask.given)):
        # Hosts can be untuned whatever lab began the latest run.
        return ResolvedRun(run_id=run_id, recorded=None, records={}, given=ask.given)
    run_dir = ask.root / "results" / run_id
    recorded = plans.read(run_dir) if RunDir(run_dir).plan.exists() else None
    kept = records.load(run_dir)
    # Check the hosts first: on other hosts a later check could fail for a misleading reason.
    if resumes and kept and recorded and recorded.plan.host_kind != ask.host_kind:
        raise PlanError(
            f"run_id: '{run_id}' was begun on {recorded.plan.host_kind}, and would go on with "
            f"{ask.host_kind}. {identity.remedy(recorded.inventory_args)}"
        )
    folder = ask.root / "files" / study_files.FOLDERS["lesson"]
    plan.refuse_other(ask.stage, run_id, recorded, ask.given, folder)
    read = reader.read(run_dir)
    reader.refuse_before(ask.stage, read)
    own = {**ask.given, "lesson": None} if ask.stage != plan.RUN else ask.given
    given = _with_recorded(recorded, own) if resumes else ask.given
    return ResolvedRun(run_id=run_id, recorded=recorded, records=kept, given=given, reader=read)


def named_run(ask: Request) -> str | None:
    """Return the run_id that was given, or that of the latest run where none begins; else None."""
    named = study_files.filled(ask.given).get("run_id")
    if named is not None:
        return check_options.run_id(str(named))
    latest = ask.root / "results" / LATEST
    return latest.resolve().name if not ask.begin and latest.exists() else None


def _refuse_absent_run(ask: Request, run_id: str | None) -> None:
    """Raise PlanError where the run does not exist and nothing given starts one.

    A run is started by what to measure or, in a stage that measures nothing, by what to tune.
    """
    results = ask.root / "results"
    if run_id is not None and RunDir(results / run_id).plan.exists():
        return
    given = study_files.filled(ask.given)
    begins = [
        "framework",
        "app",
        "base",
        *study_files.FOLDERS,
        *([] if ask.begin else ["tuning", "network"]),
    ]
    named = f"-e {ask.kind if ask.kind in study_files.FOLDERS else 'framework'}=<name>"
    named = "-e base=<variant> -e head=<variant>" if ask.kind == "ab" else named
    how = f"{'' if ask.begin else 'lab.yml and '}{named}"
    if "run_id" in given and (ask.needs_run or not any(name in given for name in begins)):
        raise PlanError(
            f"run_id: '{run_id}' is not in results/. {runs(results)} Give another -e run_id=, or "
            f"begin this one with {how}."
        )
    if ask.needs_run:
        raise PlanError(
            f"run_id: none was given, and results/latest names no run. {runs(results)} Give one "
            f"with -e run_id=<run_id>, or begin one with {how}."
        )


def _with_recorded(recorded: Run | None, given: GivenOptions) -> GivenOptions:
    """Return the options given, on top of those of the run unless they say what to measure."""
    if recorded is None or _says_what_to_measure(given):
        return given
    its = study_files.filled(recorded.plan.given)
    renamed = {user_options.RENAMED.get(name, name): value for name, value in its.items()}
    return {**given, **renamed, **study_files.filled(given)}


def _says_what_to_measure(given: GivenOptions) -> bool:
    return any(
        name in study_files.filled(given) for name in ("framework", "app", *study_files.FOLDERS)
    )
