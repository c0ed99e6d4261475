"""The last lines of a run, which can be shown again at any time.

Everything comes from the run's documents on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadlab.model import (
    Certificate,
    Claims,
    Manifest,
    MatrixVerdict,
    Progress,
    Reproduction,
    Summary,
    Verdict,
)
from loadlab.plan import plan_document, progress
from loadlab.report.sections import reproduction_section
from loadlab.report.terminal import cell_lines
from loadlab.report.words import cost_words, disturbances, labels, matrix_words
from loadlab.report.words import verdict_words as words
from loadlab.results import summarize as summaries
from loadlab.run import documents, lock
from loadlab.run.run_dir import RunDir, folders

# Repetitions in which most differences are found; docs/statistics.md has how many.
ENOUGH = 5


def lines(run_dir: Path, headlines: Sequence[str]) -> list[str]:
    """Return the results in sentences, or the answer of a matrix; the lab's version, the paths of
    the report and of the page of several runs, and the next commands."""
    run = RunDir(run_dir)
    manifest = documents.read_or_none(run.manifest, Manifest)
    repeated = documents.read_or_none(run.reproduction, Reproduction)
    verdict = documents.read_or_none(run.verdict, Verdict)
    matrix = documents.read_or_none(run.matrix, MatrixVerdict)
    summary = documents.read_or_none(run.summary, Summary)
    disturbed = summary.disturbance if summary else None
    return [
        *([] if matrix else headlines),
        *(words.lines(verdict) if verdict else []),
        *(matrix_words.lines(matrix) if matrix else []),
        *(reproduction_section.lines(repeated) if repeated else []),
        *([f"Lab: {labels.lab(manifest.lab)}"] if manifest else []),
        *(
            [f"Cost: {cost_words.sentence(manifest.instances)}"]
            if manifest and manifest.instances
            else []
        ),
        *([f"Comment: {run.comment}"] if run.comment.exists() else []),
        *([f"Report: {run.report}"] if run.report.exists() else []),
        *([f"All runs: {run.index}"] if _several(run) else []),
        *([disturbances.whole(disturbed)] if disturbed else []),
        *following(run_dir),
    ]


def derived(run_dir: Path, summary: Summary, claims: Claims | None) -> str:
    """Return the table that is printed once the results are derived; empty of a lesson, whose page
    has the figures and the claims, and of a matrix, which has its own of the contenders."""
    own = _is_lesson(run_dir) or RunDir(run_dir).matrix.exists()
    return "" if own else cell_lines.tables(summary, claims)


def reported(run_dir: Path, headlines: Sequence[str]) -> list[str]:
    """Return what is printed once the report is written; of a lesson only its path."""
    if _is_lesson(run_dir):
        return [f"Report: {RunDir(run_dir).report}"]
    return lines(run_dir, headlines)


def _is_lesson(run_dir: Path) -> bool:
    study = plan_document.read(run_dir).plan.study
    return study is not None and study.kind == "lesson"


def _several(run: RunDir) -> bool:
    """Return whether the page of all runs has another than this one."""
    return run.index.exists() and len(folders(run.path.parent)) > 1


def following(run_dir: Path) -> list[str]:
    """Return the commands that are useful next; empty after a lesson, which names its own."""
    planned = plan_document.read(run_dir).plan
    if _is_lesson(run_dir):
        return []
    certifies = bool(planned.study and planned.study.expectations)
    resume = resumed(run_dir)
    found = documents.read_or_none(RunDir(run_dir).progress, Progress)
    # A matrix drops candidates that fail.
    lacks = found is not None and found.abandoned and not planned.matrix
    if found is None or found.done < found.total or lacks:
        return [f"Next: {resume}  # measures what is missing"]
    if certifies:
        return _after_certificate(run_dir, plan_document.read(run_dir).inventory_args)
    if planned.ab and planned.ab.baseline:
        return ["Next: the same with -e base=<variant> in place of baseline  # for an answer"]
    if planned.ab or planned.matrix:
        return [f"Next: {resume} -e budget={planned.options.budget}  # more blocks, if undecided"]
    measured = planned.options.repetitions
    more = ENOUGH if measured < ENOUGH else 2 * measured
    compare = f"-e base={RunDir(run_dir).run_id} -e head=<run_id>"
    return [
        f"Next: {resume} -e repetitions={more}  # more repetitions",
        f"      ansible-playbook playbooks/compare.yml {compare}  # another run against this one",
    ]


def resumed(run_dir: Path) -> str:
    """Return the command that resumes a run with the playbook that began it."""
    planned = plan_document.read(run_dir).plan
    kind = planned.study.kind if planned.study else None
    playbook = "playbooks/study.yml" if kind == "study" else "lab.yml"
    if planned.study and planned.study.expectations:
        playbook = "playbooks/certify.yml"
    playbook = "playbooks/ab.yml" if planned.ab else playbook
    playbook = "playbooks/matrix.yml" if planned.matrix else playbook
    playbook = "playbooks/lesson.yml" if kind == "lesson" else playbook
    # The reader was asked already.
    asked = " -e predict=none" if kind == "lesson" else ""
    return f"ansible-playbook {playbook} {plan_document.resume_args(run_dir)}{asked}"


def more_repetitions(run_dir: Path) -> str:
    """Return the command that measures as many repetitions once more."""
    repetitions = plan_document.read(run_dir).plan.options.repetitions
    return f"{resumed(run_dir)} -e repetitions={2 * repetitions}"


def _after_certificate(run_dir: Path, inventory_args: str) -> list[str]:
    """Return what to do after a certificate: measure on these hosts, or certify them again."""
    found = documents.read_or_none(RunDir(run_dir).certificate, Certificate)
    hosts = f" {inventory_args}".rstrip()
    if found is not None and found.passed:
        named = "its report names this certificate"
        return [f"Next: ansible-playbook lab.yml -e framework=<name>{hosts}  # {named}"]
    return [
        "Next: see in the report's section Certificate what failed; stop other work on the hosts",
        f"      ansible-playbook playbooks/certify.yml{hosts}  # once more",
    ]


def shown(run_dir: Path, now: float) -> list[str]:
    """Return the last lines of a run; of an unfinished run its progress and the results so far.

    ``now``: unix seconds.
    """
    from loadlab.kinds import page  # imports matplotlib, which takes a second

    run = RunDir(run_dir)
    holder = lock.holder(run_dir)
    if holder is not None:
        return [
            f"Run {run.run_id} is running in process {holder}: {_progress(run, now)}",
            *_table(summaries.summary(run_dir), None),
        ]
    summary = documents.read_or_none(run.summary, Summary)
    if summary is None:
        return [
            f"Run {run.run_id} is not finished: {_progress(run, now)}",
            *_table(summaries.summary(run_dir), None),
            *following(run_dir),
        ]
    headlines = [headline.text for headline in page.build(run_dir).headlines]
    return [
        f"Run {run.run_id}, started {plan_document.read(run_dir).started}",
        *_table(summary, documents.read_or_none(run.claims, Claims)),
        *lines(run_dir, headlines),
    ]


def _progress(run: RunDir, now: float) -> str:
    found = documents.read_or_none(run.progress, Progress)
    if found is None:
        return "no load was offered yet"
    left = f", {progress.until(found.ends, now)}" if found.ends > now else ""
    return f"{found.done} of {found.total} measured{left}"


def _table(summary: Summary, claims: Claims | None) -> list[str]:
    return cell_lines.tables(summary, claims).splitlines() if summary.cells else []
