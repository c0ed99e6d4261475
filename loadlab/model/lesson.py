"""Lessons: what a file of files/lessons/ asks, shows and lets repair, and what a reader did."""

from typing import Annotated, Literal

from msgspec import Meta, field

from loadlab.model.base import SCHEMA, Count, NotNegative, Positive, Record, doc
from loadlab.model.claims import Claim, StudyClaim


class LessonOption(Record, kw_only=True, frozen=True):
    """An answer that a question offers."""

    text: Annotated[str, doc("The answer in words.")]
    holds: Annotated[
        str, doc("Condition on the run's figures under which it is right (run/expressions.py).")
    ]
    correction: Annotated[
        str | None,
        doc("For whoever gave it wrongly, one sentence; absent for the answer that is expected."),
    ] = None


class Prediction(Record, kw_only=True, frozen=True):
    """A question before the run: a choice of answers, or a number."""

    question: Annotated[str, doc("The question.")]
    options: Annotated[
        dict[str, LessonOption] | None, doc("Letter -> answer; absent for a number.")
    ] = None
    truth: Annotated[
        str | None,
        doc("Expression of the run's figures whose value is the answer; absent for a choice."),
    ] = None
    unit: Annotated[str | None, doc("Unit of the number; absent for a choice.")] = None
    factor: Annotated[
        Annotated[float, Meta(gt=1)] | None,
        doc(
            "A right answer is at most this many times the truth, and the truth at most this many "
            "times the answer; absent for a choice."
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raise ValueError where the question is not of exactly one form."""
        number = (self.truth, self.unit, self.factor)
        if self.options is None and None in number:
            raise ValueError("a prediction needs options, or truth, unit and factor")
        if self.options is not None and number != (None, None, None):
            raise ValueError("a prediction with options has no truth, unit or factor")
        if self.options is not None:
            expected = [
                lesson_option
                for lesson_option in self.options.values()
                if lesson_option.correction is None
            ]
            if len(self.options) < 2 or len(expected) != 1:
                raise ValueError("options: give two or more, all but one with a correction")


class HandCommand(Record, kw_only=True, frozen=True):
    """A command that a reader types on a host."""

    host: Annotated[Literal["server", "client"], doc("Where.")]
    command: Annotated[str, doc("The command.")]
    shows: Annotated[str, doc("What it shows.")]


class LessonColumn(Record, kw_only=True, frozen=True):
    """A column of a lesson's table."""

    cell: Annotated[str, doc("Name of the cell.")]
    heading: Annotated[str, doc("What it is.")]


class LessonRow(Record, kw_only=True, frozen=True):
    """A row of a lesson's table: a metric of each of its cells."""

    label: Annotated[str, doc("What it is.")]
    metric: Annotated[str, doc("Path of the metric in a repetition of summary.json.")]
    form: Annotated[
        str | None, doc("One of FORMS of core/expressions.py; absent where the metric decides.")
    ] = None


class Solution(Record, kw_only=True, frozen=True):
    """What the lab does where the reader asks for the solution: a cell's set-up, or commands."""

    cell: Annotated[str | None, doc("Name of the cell whose set-up the hosts get.")] = None
    commands: Annotated[list[HandCommand], doc("Commands that the lab runs, in order.")] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        """Raise ValueError where it is not of exactly one form."""
        if (self.cell is None) == (not self.commands):
            raise ValueError("a solution needs one of cell, commands")


class Exercise(Record, kw_only=True, frozen=True):
    """A fault that the reader repairs by hand on the hosts, and how the repair is checked."""

    cell: Annotated[
        str,
        doc("Name of the cell that the hosts are left as. Its injected faults are not in a check."),
    ]
    fault: Annotated[
        list[HandCommand],
        doc("Commands that the lab runs, in order, for a fault that is not in the cell's set-up."),
    ] = field(default_factory=list)
    task: Annotated[str, doc("What is broken, and what is to be achieved.")]
    hints: Annotated[list[str], doc("Hints, given one at a time.")]
    cured: Annotated[
        Annotated[list[StudyClaim], Meta(min_length=1)],
        doc("Claims that a cure fulfils. They name the measured state `check`."),
    ]
    price: Annotated[
        list[StudyClaim], doc("Claims that a cure without another price also fulfils.")
    ] = field(default_factory=list)
    wrong: Annotated[
        list[HandCommand],
        doc("A plausible repair that cures nothing: commands, each with why it does not help."),
    ] = field(default_factory=list)
    solution: Annotated[Solution, doc("What the lab applies where the reader asks for it.")]


class Issue(Record, kw_only=True, frozen=True):
    """A public report of the same fault."""

    title: Annotated[str, doc("What it reports.")]
    url: Annotated[Annotated[str, Meta(pattern="^https://")], doc("Where.")]


class Transfer(Record, kw_only=True, frozen=True):
    """The same mechanism with one option changed: a cell named `transfer`."""

    text: Annotated[str, doc("What changes.")]
    cell: Annotated[str, doc("Name of the cell whose options it has.")]
    options: Annotated[
        dict[str, str | int | float | bool], doc("The option that changes -> its value.")
    ]
    predictions: Annotated[
        Annotated[list[Prediction], Meta(min_length=1)], doc("Questions before it is measured.")
    ]
    explanation: Annotated[str, doc("Text with figures of `transfer` and of the other cells.")]


class Lesson(Record, kw_only=True, frozen=True):
    """What a lesson has besides its cells and claims."""

    predictions: Annotated[
        Annotated[list[Prediction], Meta(min_length=1)], doc("Questions before the run.")
    ]
    table: Annotated[list[LessonRow], doc("Figures that the page shows of every cell.")]
    columns: Annotated[list[LessonColumn], doc("Each cell, in order.")]
    fits: Annotated[
        dict[str, list[str]],
        doc(
            "Name -> cells of as many connections each, to whose goodput the Universal Scalability "
            "Law is fitted. Expressions name its figures: <name>.sigma."
        ),
    ] = field(default_factory=dict)
    by_hand: Annotated[list[HandCommand], doc("Commands that show the counters on a host.")]
    explanation: Annotated[str, doc("Text with the run's figures (run/expressions.py).")]
    cure: Annotated[str, doc("What to change, in words.")]
    issue: Annotated[Issue, doc("Where it bites in production.")]
    exercise: Annotated[Exercise | None, doc("A fault to repair by hand.")] = None
    transfer: Annotated[Transfer | None, doc("The same with one option changed.")] = None


class Reader(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """reader.json: what the reader of a lesson did. Nothing else records it."""

    answers: Annotated[
        list[str | None], doc("Answer to each question as typed; null where none was given.")
    ] = field(default_factory=list)
    seconds: Annotated[
        NotNegative | None, doc("Time that the answers took; absent where nobody was asked.")
    ] = None
    transfer: Annotated[
        list[str | None] | None, doc("Answers before the transfer; absent before it.")
    ] = None
    exercise_began: Annotated[
        float | None, doc("When the broken hosts were handed over, unix seconds; absent before.")
    ] = None
    hints: Annotated[Count, doc("Hints that were given.")] = 0
    solved: Annotated[bool, doc("Whether the lab applied the solution.")] = False


class PredictionResult(Record, kw_only=True, frozen=True):
    """A prediction beside what was measured."""

    question: Annotated[str, doc("The question.")]
    answer: Annotated[str | None, doc("The answer: a letter or a number; null where none was.")]
    truth: Annotated[
        float | str | None,
        doc("Measured number in its unit, or letter of the option that holds; null where none is."),
    ]
    unit: Annotated[str | None, doc("Unit of the number; absent for a choice.")] = None
    error: Annotated[
        float | None,
        doc("(answer - truth) / truth of a number; absent for a choice and where not known."),
    ] = None
    right: Annotated[
        bool | None, doc("Whether the answer is right; null without an answer or a truth.")
    ]


class CheckResult(Record, kw_only=True, frozen=True):
    """A measurement of the hosts as the reader left them."""

    check: Annotated[Positive, doc("Number of the check.")]
    verdict: Annotated[
        Literal["cured", "at_a_price", "not_yet", "not_measured"],
        doc(
            "cured: every claim holds. at_a_price: the fault is gone, and a claim of price does "
            "not hold. not_yet: the fault is there. not_measured: no valid measurement."
        ),
    ]
    cured: Annotated[list[Claim], doc("Claims that a cure fulfils.")]
    price: Annotated[list[Claim], doc("Claims that a cure without another price also fulfils.")]


class ExerciseResult(Record, kw_only=True, frozen=True):
    """What became of an exercise."""

    checks: Annotated[list[CheckResult], doc("Each check, in order.")]
    hints: Annotated[Count, doc("Hints that were given.")]
    solved: Annotated[bool, doc("Whether the lab applied the solution.")]
    seconds: Annotated[
        NotNegative | None,
        doc("From the broken hosts to the first check that found them cured; null before."),
    ]


class LessonResult(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """lesson.json: the answers of a lesson's reader beside what was measured."""

    run_id: Annotated[str, doc("Name of the run's folder.")]
    name: Annotated[str, doc("Name of the lesson's file.")]
    predictions: Annotated[list[PredictionResult], doc("Each question.")]
    transfer: Annotated[
        list[PredictionResult] | None, doc("Each question of the transfer; absent before it.")
    ] = None
    answered: Annotated[Count, doc("Questions that were answered.")]
    right: Annotated[Count, doc("Answers that are right.")]
    error: Annotated[
        NotNegative | None,
        doc("Median of the absolute errors of numbers; null where none was answered."),
    ]
    seconds: Annotated[NotNegative | None, doc("Time that the answers took; null if not asked.")]
    exercise: Annotated[
        ExerciseResult | None, doc("The exercise; null where it was not begun.")
    ] = None


class Grade(Record, kw_only=True, frozen=True, omit_defaults=False):
    """A row of the table of a class: one bundle of a lesson, derived again."""

    bundle: Annotated[str, doc("Name of the archive.")]
    verified: Annotated[bool, doc("Whether every document follows from the raw files.")]
    reason: Annotated[str, doc("Why it is not verified; empty where it is.")]
    result: Annotated[
        LessonResult | None, doc("lesson.json as derived again; null where there is none.")
    ]
