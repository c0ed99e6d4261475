"""Read the documents of every run in results/: none is left out, and none ends the reading."""

import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from loadlab.history.reproduction import Basis, basis
from loadlab.model import Manifest, Progress, Summary
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Run
from loadlab.run import documents, lock, run_dir
from loadlab.run.errors import SchemaError
from loadlab.run.run_dir import RunDir

State: TypeAlias = Literal["finished", "unfinished", "running", "other version", "broken"]


@dataclass(frozen=True)
class Measured:
    """What was measured in a run, and on what."""

    summary: Summary
    manifest: Manifest
    basis: Basis


@dataclass(frozen=True)
class PastRun:
    """A run in results/."""

    run_id: str
    #: running where another process holds it; other version where a document is of a schema that
    #: this lab does not read; broken where a document is malformed or absent.
    state: State
    problem: str = ""  #: Of a broken run, what is wrong with which document.
    #: began, ended: unix seconds; None where not known. It ended with its last load.
    began: float | None = None
    ended: float | None = None
    begun: Run | None = None  #: plan.json.
    progress: Progress | None = None
    #: None where there is no summary, or a document is unreadable.
    measured: Measured | None = None
    has_report: bool = False
    has_bundle: bool = False


def read(results: Path, own: int | None = None) -> list[PastRun]:
    """Return all runs in the order in which they ended, those without a time first.

    A run that is measured later is therefore never before one that is known. ``own``: the process
    whose run is not running any more.
    """
    runs = [_past(run, own) for run in run_dir.folders(results)]
    return sorted(runs, key=lambda run: (run.ended or run.began or 0.0, run.run_id))


def _past(run: RunDir, own: int | None) -> PastRun:
    past = PastRun(
        run.path.name, "broken", has_report=run.report.exists(), has_bundle=run.bundle.exists()
    )
    try:
        past = replace(
            past,
            begun=plans.read(run.path),
            progress=documents.read_or_none(run.progress, Progress),
        )
        return _complete(run, own, past)
    except SchemaError:
        return replace(past, state="other version")
    except (ValueError, OSError) as problem:
        return replace(past, problem=_without_path(problem))


def _complete(run: RunDir, own: int | None, past: PastRun) -> PastRun:
    assert past.begun
    past = replace(past, began=_seconds(past.begun.started))
    state: State = "finished"
    measured = None
    if run.summary.exists():
        manifest = documents.read(run.manifest, Manifest)
        summary = documents.read(run.summary, Summary)
        measured = Measured(summary, manifest, basis(run.path))
        if manifest.finished:
            past = replace(past, ended=_seconds(manifest.finished))
    done = past.progress
    if measured is None or done is None or done.done < done.total or done.abandoned:
        state = "unfinished"
    if lock.holder(run.path) not in (None, own):
        state = "running"
    return replace(past, state=state, measured=measured)


def _seconds(time: str) -> float:
    """Return unix seconds. Raises ValueError for a text that is no time."""
    return datetime.datetime.fromisoformat(time).timestamp()


def _without_path(problem: Exception) -> str:
    """Return what is wrong, without the places of this machine, as the page may be published."""
    if isinstance(problem, OSError):
        name = Path(str(problem.filename)).name if problem.filename else ""
        return f"{name}: {problem.strerror}"
    return str(problem)
