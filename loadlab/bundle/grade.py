"""Grade the bundles of a class: verify each, and read its lesson as derived again."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from loadlab.bundle import verify
from loadlab.bundle.archive import BundleError
from loadlab.bundle.outcome import Outcome
from loadlab.model import Grade, LessonResult
from loadlab.run import documents
from loadlab.run.formatting import one_line, plural
from loadlab.run.run_dir import RunDir

_ENDING = ".tar.gz"


def bundles(folder: str) -> list[Path]:
    """Return the archives in a folder, by name. Raises BundleError where there is none."""
    archives = sorted(Path(folder).glob(f"*{_ENDING}")) if folder else []
    if not archives:
        raise BundleError(
            f"bundles: '{folder}' is no folder with bundles (*{_ENDING}). Give the folder that has "
            "them. Nothing was written."
        )
    return archives


def grades(folder: str, root: Path) -> Iterator[Grade]:
    """Yield the grade of each bundle in a folder; a bundle that is refused is graded so.

    ``root``: top directory of this lab. Raises BundleError where there is none.
    """
    for archive in bundles(folder):
        with tempfile.TemporaryDirectory(prefix="loadlab-grade-") as scratch:
            yield _grade(archive, root, Path(scratch))


def _grade(archive: Path, root: Path, scratch: Path) -> Grade:
    name = archive.name.removesuffix(_ENDING)
    try:
        outcome = verify.verify(archive, root, scratch)
    except (ValueError, OSError) as problem:
        reason = one_line(str(problem), 200)
        return Grade(bundle=name, verified=False, reason=reason, result=None)
    lesson = RunDir(outcome.run_dir).lesson
    return Grade(
        bundle=name,
        verified=outcome.verified,
        reason=_reason(outcome),
        result=documents.read_or_none(lesson, LessonResult),
    )


def _reason(outcome: Outcome) -> str:
    """Return the first file that is not as derived again, with why; empty where all are."""
    wrong = {**outcome.of("differs"), **dict.fromkeys(outcome.unverified(), ())}
    for name, reasons in wrong.items():
        more = f"; and {plural(len(wrong) - 1, 'more file')}" if len(wrong) > 1 else ""
        return one_line(f"{': '.join((name, *reasons[:1]))}{more}", 200)
    return ""
