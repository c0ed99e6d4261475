"""Words for lesson.json and for the figures in a lesson's text."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial

from loadlab.kinds.lesson import plan
from loadlab.kinds.study import words as claims_words
from loadlab.model import (
    CheckResult,
    Claim,
    Exercise,
    Grade,
    Lesson,
    LessonResult,
    Prediction,
    PredictionResult,
    UnmeasuredCell,
)
from loadlab.report.html import Column
from loadlab.report.terminal import text_columns
from loadlab.report.words import disturbances
from loadlab.report.words.quantities import quantity
from loadlab.run import expressions, formatting
from loadlab.run.expressions import Lookup, Place

NO_TERMINAL = (
    "There is no terminal to ask for predictions in. -e predict=b,1000 gives them, -e predict=none "
    "gives none."
)


def text(template: str, lookup: Lookup) -> str:
    """Return a lesson's text with its figures, "-" for one that was not measured."""
    return "".join(
        _place(part, lookup) if isinstance(part, Place) else part
        for part in expressions.parts(template)
    )


def figure(value: float | None, form: str, metric: str | None = None) -> str:
    """Format a value in one of FORMS of loadlab/run/expressions.py; "" is the metric's own form."""
    if value is None:
        return formatting.NONE
    if form == "":
        return quantity(metric, value)
    if form == "ms":
        return f"{formatting.ms(value)} ms"
    forms = {
        "count": formatting.count,
        "percent": formatting.percent,
        "plain": formatting.plain,
        "number": formatting.significant,
    }
    return forms[form](value)


def _place(place: Place, lookup: Lookup) -> str:
    figures = expressions.figures(place.expression)
    # A sum of figures has no unit of its own.
    alone = [metric for cell, metric in figures if place.expression == f"{cell}.{metric}"]
    value = expressions.number(place.expression, lookup)
    return figure(value, place.form, alone[0] if alone else None)


def ask(prediction: Prediction, number: int, of: int) -> str:
    """Return a question as the terminal asks it."""
    lines = [f"Question {number} of {of}: {prediction.question}"]
    if prediction.options is not None:
        lines += [f"  {letter}) {option.text}" for letter, option in prediction.options.items()]
        return "\n".join([*lines, f"Your answer ({', '.join(prediction.options)}; Enter for none)"])
    return "\n".join([*lines, f"Your answer, in {prediction.unit} (Enter for none)"])


def answer(word: str | None, question: Prediction) -> str:
    """Return the reader's answer in words; ``word``: a letter or number, None where none was."""
    return "no answer" if word is None else _answer(word, question)


def truth(result: PredictionResult, question: Prediction) -> str:
    """Return what was measured, in the words of the answer."""
    if result.truth is None:
        return "this run decides for none of the answers"
    if isinstance(result.truth, str):
        return _answer(result.truth, question)
    return _answer(quantity(None, result.truth), question)


def _answer(word: str, question: Prediction) -> str:
    if question.options is None:
        return f"{word} {question.unit}"
    return f"{word}) {question.options[word].text}"


def verdict(result: PredictionResult, question: Prediction) -> str:
    """Return whether an answer is right, and the correction of a misconception."""
    if result.right is None:
        return ""
    if result.error is not None:
        within = f"within a factor of {formatting.plain(question.factor or 1)}"
        off = f"{formatting.signed(result.error)} off"
        return f"right, {off}" if result.right else f"not {within}: {off}"
    if result.right:
        return "right"
    option = (question.options or {}).get(result.answer or "")
    return f"not here. {option.correction}" if option and option.correction else "not here"


def summed(result: LessonResult) -> str:
    """Return a sentence on all answers."""
    of = formatting.plural(len(result.predictions), "question")
    if not result.answered:
        return f"No answers to {of}."
    off = "" if result.error is None else f" Numbers are off by {formatting.percent(result.error)}."
    return f"{result.right} of {of} right.{off}"


VERDICTS = {
    "cured": "cured",
    "at_a_price": "cured at another price",
    "not_yet": "not cured yet",
    "not_measured": "not measured",
}
# Of a goal, by the outcome of its claim.
_GOALS = {"confirmed": "reached", "refuted": "not reached", "inconclusive": "undecided"}


def command(stage: str, inventory_args: str) -> str:
    """Return the command of a stage; ``inventory_args``: select the run's hosts."""
    return f"ansible-playbook playbooks/lesson.yml -e stage={stage} {inventory_args}".rstrip()


def login(host: Mapping[str, str]) -> str:
    """Return the command that logs in on a host; ``host``: address, user, port, key, arguments."""
    words = ["ssh", *shlex.split(host["arguments"])]
    words += ["-i", host["key"]] if host["key"] else []
    words += ["-p", host["port"]] if host["port"] not in ("", "22") else []
    at = f"{host['user']}@" if host["user"] else ""
    return shlex.join([*words, f"{at}{host['address']}"])


def task(
    exercise: Exercise, hosts: Mapping[str, Mapping[str, str]], inventory_args: str
) -> list[str]:
    """Return what the reader has to do, and how to get to each host."""
    return [
        f"Exercise: {exercise.task}",
        *(f"{name}: {login(host)}" for name, host in hosts.items()),
        f"Then: {command('check', inventory_args)}  # measures the hosts as they are",
        f"      {command('hint', inventory_args)}  # the next hint",
        f"      {command('solve', inventory_args)}  # the lab repairs it",
    ]


def hint(exercise: Exercise, number: int) -> str:
    """Return a hint, by its number from 1, or that there is none."""
    of = len(exercise.hints)
    if number > of:
        return "There is no other hint. -e stage=solve repairs the hosts."
    return f"Hint {number} of {of}: {exercise.hints[number - 1]}"


def solved(lesson: Lesson, exercise: Exercise, inventory_args: str) -> list[str]:
    """Return what the lab did, how it is done by hand, and how to see that it helped."""
    done = [f"{step.host}: {step.command}  # {step.shows}" for step in exercise.solution.commands]
    if exercise.solution.cell:
        (column,) = [own for own in lesson.columns if own.cell == exercise.solution.cell]
        done = [f"The hosts are set up as in the lesson's column '{column.heading}' now."]
        done.append(f"By hand: {exercise.hints[-1]}")
    return [*done, f"Then: {command('check', inventory_args)}"]


def check(result: CheckResult, unmeasured: Sequence[UnmeasuredCell]) -> list[str]:
    """Return the verdict of a check, and each goal with what was measured, or why nothing was.

    ``unmeasured``: of claims.json.
    """
    lines = [_goal(claim) for claim in result.cured]
    lines += [f"price: {_goal(claim)}" for claim in result.price]
    name = plan.name(result.check)
    lines += [claims_words.void_reasons(cell.reasons) for cell in unmeasured if cell.cell == name]
    return [f"Check {result.check}: {VERDICTS[result.verdict]}", *(f"  {line}" for line in lines)]


def _goal(claim: Claim) -> str:
    parts = "; ".join(map(claims_words.goal, claim.parts))
    return f"{_GOALS[claim.outcome]}: {claim.statement.removeprefix('and ')}: {parts}"


def red(result: CheckResult, inventory_args: str) -> str:
    """Return what to do after a check that does not find the hosts cured, else ""."""
    if result.verdict in ("cured", "at_a_price"):
        return ""
    if result.verdict == "not_measured":
        return (
            "The check has no valid measurement, for the reason above. Measure once more: "
            f"{command('check', inventory_args)}"
        )
    return (
        "The hosts are not cured yet. Repair them further and check again, or ask for a hint: "
        f"{command('hint', inventory_args)}"
    )


def without_figures(unmeasured: Sequence[UnmeasuredCell], resume: str) -> str:
    """Return why a lesson has no page, and the command that measures its cells once more."""
    named = [
        f"the cell {cell.cell}: {claims_words.void_reasons(cell.reasons)}" for cell in unmeasured
    ]
    reasons = [reason for cell in unmeasured for reason in cell.reasons]
    remedy = disturbances.instead_of_repeating(reasons) or f"Go on in a quieter hour with {resume}"
    return f"No valid repetition of {'; of '.join(named)}. {remedy}"


def following(lesson: Lesson, result: LessonResult, inventory_args: str) -> list[str]:
    """Return the commands of what the reader has not done yet; after all of it, the bundle's."""
    cured = result.exercise is not None and any(
        check.verdict in ("cured", "at_a_price") for check in result.exercise.checks
    )
    commands = []
    if lesson.exercise and not cured:
        commands.append(
            f"{command('exercise', inventory_args)}  # breaks the hosts, to be repaired"
        )
    if lesson.transfer and result.transfer is None:
        commands.append(
            f"{command('transfer', inventory_args)}  # asks again, with one option changed"
        )
    commands = commands or ["python -m loadlab bundle  # one archive of it all, for a teacher"]
    return [f"{'      ' if number else 'Next: '}{step}" for number, step in enumerate(commands)]


GRADES = (
    "bundle", "lesson", "right", "questions", "error", "cure_s", "checks", "hints", "verdict",
    "verified", "reason",
)  # fmt: skip


def grade(graded: Grade) -> list[str]:
    """Return the row of a bundle, a word for each of GRADES."""
    result = graded.result
    verified = "yes" if graded.verified else "no"
    if result is None:
        reason = graded.reason or "the run of no lesson"
        return [graded.bundle, *[formatting.NONE] * (len(GRADES) - 3), verified, reason]
    done = result.exercise
    verdict = VERDICTS[done.checks[-1].verdict] if done and done.checks else formatting.NONE
    return [
        graded.bundle,
        result.name,
        str(result.right),
        str(len(result.predictions)),
        formatting.NONE if result.error is None else formatting.percent(result.error),
        formatting.NONE if done is None or done.seconds is None else f"{done.seconds:.0f}",
        formatting.NONE if done is None else str(len(done.checks)),
        formatting.NONE if done is None else str(done.hints),
        f"{verdict}, by the lab" if done and done.solved else verdict,
        verified,
        graded.reason,
    ]


# Columns of the terminal, which has a line for each reason instead, and each lesson's name once.
_SHOWN = ("bundle", "right", "error", "cure_s", "checks", "hints", "verdict")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table of grade() with its head, of 80 columns where bundles have short
    names; then the lessons, where bundles are of several, and a line for each reason."""
    marked = [dict(zip(GRADES, row, strict=True)) for row in rows]
    lessons = dict.fromkeys(row["lesson"] for row in marked if row["lesson"] != formatting.NONE)
    named = ("bundle", "lesson", *_SHOWN[1:]) if len(lessons) > 1 else _SHOWN
    columns = [Column(head, partial(_mark, head)) for head in named]
    reasons = [f"{row['bundle']}: {row['reason']}" for row in marked if row["reason"]]
    shared = [f"Lesson: {name}" for name in lessons] if len(lessons) == 1 else []
    return [*text_columns.table(columns, marked), *shared, *reasons]


def _mark(head: str, row: Mapping[str, str]) -> str:
    """Return a word of a row; of right answers also of how many, and no verdict of a bundle that is
    not verified."""
    if head == "verdict" and row["verified"] == "no":
        return "not verified"
    if head == "right" and row["right"] != formatting.NONE:
        return f"{row['right']} of {row['questions']}"
    return row[head]


def graded(grades: Sequence[Grade]) -> list[str]:
    """Return how many bundles are verified and which are not, and what the columns say."""
    failed = [grade.bundle for grade in grades if not grade.verified]
    sentence = f"{formatting.plural(len(grades), 'bundle')}, {len(grades) - len(failed)} verified."
    return [
        f"{sentence} Not verified: {', '.join(failed)}." if failed else sentence,
        "All figures are derived again from the measurements.",
        "error: median error of the predicted numbers.",
        "cure_s: seconds from the fault to the first check that found it cured.",
    ]
