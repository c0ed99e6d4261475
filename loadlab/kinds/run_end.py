"""The last lines of a run, which can be shown again at any time.

Everything comes from the run's documents on disk.
"""

from collections.abc import Sequence
from pathlib import Path

from loadlab.kinds import all_kinds
from loadlab.model import Manifest, Progress, Reproduction, Summary
from loadlab.plan import plan_document, progress
from loadlab.report.sections import reproduction_section
from loadlab.report.words import cost_words, disturbances, labels
from loadlab.results.summaries import summarize as summaries
from loadlab.run import lock
from loadlab.run.documents import read_or_none
from loadlab.run.run_dir import RunDir, folders


def lines(run_dir: Path, headlines: Sequence[str]) -> list[str]:
    """Return the results in sentences, or the answer of the run's kind; the lab's version, the
    paths of the report and of the page of several runs, and the next commands."""
    run = RunDir(run_dir)
    manifest = read_or_none(run.manifest, Manifest)
    reproduction = read_or_none(run.reproduction, Reproduction)
    summary = read_or_none(run.summary, Summary)
    paths = labels.paths(plan_document.read(run_dir).plan.endpoints)
    has_others = len(folders(run.path.parent)) > 1
    return [
        *all_kinds.of_run(run_dir).answer(run, headlines),
        *(reproduction_section.lines(reproduction, paths) if reproduction else []),
        *([f"Lab: {labels.lab(manifest.lab)}"] if manifest else []),
        *(
            [f"Cost: {cost_words.sentence(manifest.instances)}"]
            if manifest and manifest.instances
            else []
        ),
        *([f"Comment: {run.comment}"] if run.comment.exists() else []),
        *([f"Report: {run.report}"] if run.report.exists() else []),
        *([f"All runs: {run.index}"] if run.index.exists() and has_others else []),
        *(disturbances.accidents(summary.cells) if summary else []),
        *([disturbances.whole(summary.disturbance)] if summary and summary.disturbance else []),
        *following(run_dir),
    ]


def derived(run_dir: Path, summary: Summary) -> str:
    """Return the table that is printed once the results are derived; empty of a kind that shows its
    results otherwise."""
    kind = all_kinds.of_run(run_dir)
    return kind.table(RunDir(run_dir), summary) if kind.tabulates else ""


def reported(run_dir: Path, headlines: Sequence[str]) -> list[str]:
    """Return what is printed once the report is written; of a kind with its own pages only its
    path."""
    if all_kinds.of_run(run_dir).has_own_pages:
        return [f"Report: {RunDir(run_dir).report}"]
    return lines(run_dir, headlines)


def following(run_dir: Path) -> list[str]:
    """Return the commands that are useful next; empty of a kind whose own pages name them."""
    plan = plan_document.read(run_dir).plan
    kind = all_kinds.of_plan(plan)
    if kind.has_own_pages:
        return []
    run = RunDir(run_dir)
    state = read_or_none(run.progress, Progress)
    lost = kind.unmeasured(run, list(state.abandoned), []) if state else []
    if state is None or state.done < state.total or lost:
        return [f"Next: {kind.resume_command(run_dir)}  # measures what is missing"]
    summary = read_or_none(run.summary, Summary)
    if summary is None:
        return [f"Next: {kind.resume_command(run_dir)}  # writes the results"]
    if not (kind.expects_void or _has_valid(summary)):
        repetitions = [repetition for cell in summary.cells for repetition in cell.repetitions]
        reasons = [reason for void in repetitions for reason in void.validity.reasons]
        if remedy := disturbances.instead_of_repeating(reasons):
            return [f"Next: {remedy}  # no repetition can be valid here"]
        # The same command as in the failure of the playbook, which show does not print.
        return [f"Next: {kind.more_repetitions(run_dir)}  # once more, as nothing is valid"]
    return kind.next_steps(run, plan)


def _has_valid(summary: Summary) -> bool:
    return any(cell.statistics.n for cell in summary.cells)


def shown(run_dir: Path, now: float) -> list[str]:
    """Return the last lines of a run; of an unfinished run its progress and the results so far.

    ``now``: unix seconds.
    """
    from loadlab.kinds import page  # imports matplotlib, which takes a second

    run = RunDir(run_dir)
    holder = lock.holder(run_dir)
    summary = read_or_none(run.summary, Summary)
    if holder is not None or summary is None:
        so_far = summaries.summary(run_dir)
        state = f"running in process {holder}" if holder is not None else "not finished"
        return [
            f"Run {run.run_id} is {state}: {_progress(run, now)}",
            *(all_kinds.of_run(run_dir).table(run, so_far).splitlines() if so_far.cells else []),
            *(following(run_dir) if holder is None else []),
        ]
    return [
        f"Run {run.run_id}, started {plan_document.read(run_dir).started}",
        *derived(run_dir, summary).splitlines(),
        *lines(run_dir, [headline.text for headline in page.build(run_dir).headlines]),
    ]


def _progress(run: RunDir, now: float) -> str:
    state = read_or_none(run.progress, Progress)
    if state is None:
        return "no load was offered yet"
    left = f", {progress.until(state.ends, now)}" if state.ends > now else ""
    return f"{state.done} of {state.total} measured{left}"
