"""The page of a lesson: predictions beside what was measured, and why, with this run's figures.

Reads the run's documents and writes nothing. The same files give the same pages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from loadlab.kinds.lesson import analyse, words
from loadlab.kinds.lesson.kind import LessonKind
from loadlab.kinds.study import sampling
from loadlab.kinds.study import words as claim_words
from loadlab.model import (
    Claims,
    HandCommand,
    Issue,
    Lesson,
    LessonResult,
    PlannedStudy,
    Prediction,
    PredictionResult,
    Summary,
    Transfer,
)
from loadlab.plan import plan_document
from loadlab.report.html import UNSEEN, policy_hash
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.expressions import Lookup
from loadlab.run.run_dir import LESSON_PAGE, LESSON_TEXT, REPORT, RunDir

# The heading of the last part of lesson.md.
TRANSFER = "## Transfer"
# `code`, **bold** and *emphasized* in the text of a lesson.
_MARKED = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*")
_TAGS = ("code", "strong", "em")


@dataclass(frozen=True)
class Answer:
    """A question, the reader's answer, what was measured, and a remark on both."""

    question: str
    answer: str
    truth: str
    verdict: str


@dataclass(frozen=True)
class TransferPart:
    """What the templates lay out of a transfer."""

    text: str
    answers: Sequence[Answer]
    explanation: Sequence[str]


@dataclass(frozen=True)
class LessonPage:
    """What the templates lay out; texts are paragraphs with marks (`code`, **bold**)."""

    title: str
    question: str
    answers: Sequence[Answer]
    score: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Sequence[str]
    by_hand: Sequence[HandCommand]
    explanation: Sequence[str]
    cure: Sequence[str]
    wrong: Sequence[HandCommand]
    issue: Issue
    task: str
    checks: Sequence[Sequence[str]]
    transfer: TransferPart | None
    report: str


def pages(run_dir: Path, root: Path) -> dict[str, bytes]:
    """Return the lesson's pages, name of the file in the run's folder -> content.

    ``root``: top directory of the lab, which has the templates and the picture. Raises ResultError
    where the run has no lesson, or a cell of it no valid repetition.
    """
    page, study = build(run_dir)
    templates = root / "roles" / "report" / "templates"
    picture = documents.text(root / "files" / "lessons" / f"{study.name}.svg")
    return {
        LESSON_TEXT: _render(templates / "lesson.md.j2", page, False),
        LESSON_PAGE: _render(templates / "lesson.html.j2", page, True, picture),
    }


def build(run_dir: Path) -> tuple[LessonPage, PlannedStudy]:
    """Return what the pages show, and the plan's lesson."""
    run = RunDir(run_dir)
    study = plan_document.read(run_dir).plan.study
    if study is None or study.lesson is None:
        raise ResultError(f"{run.plan.name} has no lesson")
    lesson = study.lesson
    result = documents.read(run.lesson, LessonResult)
    judged = documents.read(run.claims, Claims)
    summary = documents.read(run.summary, Summary)
    unmeasured = sampling.unmeasured(summary, study)
    # A check may be void: the page is of the lesson's own cells.
    shown = [column.cell for column in lesson.columns]
    without = [cell for cell in unmeasured if cell.cell in shown]
    if without:
        raise ResultError(words.without_figures(without, LessonKind().more_repetitions(run_dir)))
    lookup = analyse.figures_of(summary, study)
    return LessonPage(
        title=f"{study.name}: {study.description}",
        question=study.publication.question or "",
        answers=_answers(result.predictions, lesson.predictions),
        score=words.summed(result),
        head=["", *(column.heading for column in lesson.columns)],
        rows=_rows(lesson, lookup),
        claims=claim_words.lines(judged),
        by_hand=lesson.by_hand,
        explanation=_paragraphs(words.text(lesson.explanation, lookup)),
        cure=_paragraphs(lesson.cure),
        wrong=lesson.exercise.wrong if lesson.exercise else [],
        issue=lesson.issue,
        task=lesson.exercise.task if lesson.exercise else "",
        checks=_checks(result, judged),
        transfer=_transfer(lesson.transfer, result, lookup),
        report=REPORT,
    ), study


def _checks(result: LessonResult, judged: Claims) -> list[list[str]]:
    """Return the lines of each check: its verdict, then its goals."""
    checks = result.exercise.checks if result.exercise else []
    return [[line.strip() for line in words.check(check, judged.unmeasured)] for check in checks]


def _transfer(
    transfer: Transfer | None, result: LessonResult, lookup: Lookup
) -> TransferPart | None:
    if transfer is None or result.transfer is None:
        return None
    return TransferPart(
        transfer.text,
        _answers(result.transfer, transfer.predictions),
        _paragraphs(words.text(transfer.explanation, lookup)),
    )


def _answers(results: Sequence[PredictionResult], questions: Sequence[Prediction]) -> list[Answer]:
    return [
        Answer(
            result.question,
            words.answer(result.answer, question),
            words.truth(result, question),
            words.verdict(result, question),
        )
        for result, question in zip(results, questions, strict=True)
    ]


def _rows(lesson: Lesson, lookup: Lookup) -> list[list[str]]:
    return [
        [
            row.label,
            *(
                words.figure(lookup(column.cell, row.metric), row.form or "", row.metric)
                for column in lesson.columns
            ),
        ]
        for row in lesson.table
    ]


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each on one line."""
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def marked(text: str) -> Markup:
    """Return a text with its marks as HTML; everything else is escaped."""
    html, at = Markup(), 0
    for match in _MARKED.finditer(text):
        tag = _TAGS[(match.lastindex or 1) - 1]
        inner = escape(match[match.lastindex or 1])
        html += escape(text[at : match.start()]) + Markup(f"<{tag}>{{}}</{tag}>").format(inner)
        at = match.end()
    return html + escape(text[at:])


def _render(template: Path, page: LessonPage, html: bool, picture: str = "") -> bytes:
    """Return a page as UTF-8; HTML has the report's style, which its policy allows by its hash."""
    from jinja2 import Environment, StrictUndefined

    style = documents.text(template.with_name("report.css")).strip() if html else ""
    environment = Environment(
        autoescape=html, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = marked
    text = environment.from_string(documents.text(template)).render(
        page=page, picture=Markup(picture), style=Markup(style), style_hash=policy_hash(style)
    )
    return UNSEEN.sub("\ufffd", f"{text.strip()}\n").encode()
