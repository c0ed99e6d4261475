"""What the user reads at the end of a run, and at any time later.

Everything comes from the run's documents on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadlab.analysis import summary as summaries
from loadlab.core import documents, lock
from loadlab.report import terminal
from loadlab.scheduling import progress, records

# Repetitions that can show a difference to another run; see inference.cannot_tell().
ENOUGH = 5


def _load(run_dir: Path, name: str) -> dict[str, Any] | None:
    return documents.load(run_dir / name) if (run_dir / name).exists() else None


def lines(run_dir: Path, headlines: Sequence[str]) -> list[str]:
    """Return the results in sentences, the path of the report, and the next commands."""
    report = run_dir / "report.html"
    return [*headlines, *([f"Report: {report}"] if report.exists() else []), *following(run_dir)]


def following(run_dir: Path) -> list[str]:
    """Return the commands that are useful next; empty after a lesson, which names its own."""
    plan = documents.load(run_dir / "plan.json")["plan"]
    kind = (plan["study"] or {}).get("kind")
    if kind == "lesson":
        return []
    playbook = "playbooks/study.yml" if kind == "study" else "lab.yml"
    go_on = f"ansible-playbook {playbook} {records.go_on(run_dir)}"
    far = _load(run_dir, "progress.json")
    if far is None or far["done"] < far["total"] or far["given_up"]:
        return [f"Next: {go_on}  # measures what is missing"]
    measured = plan["options"]["repetitions"]
    more = ENOUGH if measured < ENOUGH else 2 * measured
    compare = f"-e base={run_dir.resolve().name} -e head=<run_id>"
    return [
        f"Next: {go_on} -e repetitions={more}  # the same more often",
        f"      ansible-playbook playbooks/compare.yml {compare}  # another run against this one",
    ]


def shown(run_dir: Path, now: float) -> list[str]:
    """Return the end of a run again; for an unfinished run its progress and the results so far.

    ``now``: unix seconds.
    """
    from loadlab.report import page  # imports matplotlib, which takes a second

    run_id, holder = run_dir.resolve().name, lock.holder(run_dir)
    if holder is not None:
        return [
            f"Run {run_id} is under way in process {holder}: {_far(run_dir, now)}",
            *_table(summaries.summary(run_dir), None),
        ]
    summary = _load(run_dir, "summary.json")
    if summary is None:
        far = f"Run {run_id} did not come to its end: {_far(run_dir, now)}"
        return [far, *_table(summaries.summary(run_dir), None), *following(run_dir)]
    headlines = [headline["text"] for headline in page.build(run_dir)["headlines"]]
    return [
        f"Run {run_id}, begun {documents.load(run_dir / 'plan.json')['started']}",
        *_table(summary, _load(run_dir, "claims.json")),
        *lines(run_dir, headlines),
    ]


def _far(run_dir: Path, now: float) -> str:
    far = _load(run_dir, "progress.json")
    if far is None:
        return "no load was offered yet"
    left = f", {progress.until(far['ends'], now)}" if far["ends"] > now else ""
    return f"{far['done']} of {far['total']} measured{left}"


def _table(summary: dict[str, Any], judged: dict[str, Any] | None) -> list[str]:
    return terminal.tables(summary, judged).splitlines() if summary["cells"] else []
