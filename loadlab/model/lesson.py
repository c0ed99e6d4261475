"""Lessons: what a file of files/lessons/ asks, shows and lets repair, and what a reader did."""

from typing import Annotated, Literal

from msgspec import Meta, field

from loadlab.model.base import SCHEMA, Count, NotNegative, Positive, Record
from loadlab.model.claims import Claim, StudyClaim


class LessonOption(Record, kw_only=True, frozen=True):
    """An answer that a question offers."""

    text: str  #: The answer in words.
    holds: str  #: Condition on the run's figures under which it is right (run/expressions.py).
    #: For whoever gave it wrongly, one sentence; absent for the answer that is expected.
    correction: str | None = None


class Prediction(Record, kw_only=True, frozen=True):
    """A question before the run: a choice of answers, or a number."""

    question: str  #: The question.
    options: dict[str, LessonOption] | None = None  #: Letter -> answer; absent for a number.
    #: Expression of the run's figures whose value is the answer; absent for a choice.
    truth: str | None = None
    unit: str | None = None  #: Unit of the number; absent for a choice.
    #: A right answer is at most this many times the truth, and the truth at most this many times
    #: the answer; absent for a choice.
    factor: Annotated[float, Meta(gt=1)] | None = None

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

    host: Literal["server", "client"]  #: Where.
    command: str  #: The command.
    shows: str  #: What it shows.


class LessonColumn(Record, kw_only=True, frozen=True):
    """A column of a lesson's table."""

    cell: str  #: Name of the cell.
    heading: str  #: What it is.


class LessonRow(Record, kw_only=True, frozen=True):
    """A row of a lesson's table: a metric of each of its cells."""

    label: str  #: What it is.
    metric: str  #: Path of the metric in a repetition of summary.json.
    #: One of FORMS of loadlab/run/expressions.py; absent where the metric decides.
    form: str | None = None


class Solution(Record, kw_only=True, frozen=True):
    """What the lab does where the reader asks for the solution: a cell's set-up, or commands."""

    cell: str | None = None  #: Name of the cell whose set-up the hosts get.
    #: Commands that the lab runs, in order.
    commands: list[HandCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise ValueError where it is not of exactly one form."""
        if (self.cell is None) == (not self.commands):
            raise ValueError("a solution needs one of cell, commands")


class Exercise(Record, kw_only=True, frozen=True):
    """A fault that the reader repairs by hand on the hosts, and how the repair is checked."""

    #: Name of the cell that the hosts are left as. Its injected faults are not in a check.
    cell: str
    #: Commands that the lab runs, in order, for a fault that is not in the cell's set-up.
    fault: list[HandCommand] = field(default_factory=list)
    task: str  #: What is broken, and what is to be achieved.
    hints: list[str]  #: Hints, given one at a time.
    #: Claims that a cure fulfils. They name the measured state `check`.
    cured: Annotated[list[StudyClaim], Meta(min_length=1)]
    #: Claims that a cure without another price also fulfils.
    price: list[StudyClaim] = field(default_factory=list)
    #: A plausible repair that cures nothing: commands, each with why it does not help.
    wrong: list[HandCommand] = field(default_factory=list)
    solution: Solution  #: What the lab applies where the reader asks for it.


class Issue(Record, kw_only=True, frozen=True):
    """A public report of the same fault."""

    title: str  #: What it reports.
    url: Annotated[str, Meta(pattern="^https://")]  #: Where.


class Transfer(Record, kw_only=True, frozen=True):
    """The same mechanism with one option changed: a cell named `transfer`."""

    text: str  #: What changes.
    cell: str  #: Name of the cell whose options it has.
    options: dict[str, str | int | float | bool]  #: The option that changes -> its value.
    #: Questions before it is measured.
    predictions: Annotated[list[Prediction], Meta(min_length=1)]
    explanation: str  #: Text with figures of `transfer` and of the other cells.


class Lesson(Record, kw_only=True, frozen=True):
    """What a lesson has besides its cells and claims."""

    predictions: Annotated[list[Prediction], Meta(min_length=1)]  #: Questions before the run.
    table: list[LessonRow]  #: Figures that the page shows of every cell.
    columns: list[LessonColumn]  #: Each cell, in order.
    #: Name -> cells of as many connections each, to whose goodput the Universal Scalability Law is
    #: fitted. Expressions name its figures: <name>.sigma.
    fits: dict[str, list[str]] = field(default_factory=dict)
    by_hand: list[HandCommand]  #: Commands that show the counters on a host.
    explanation: str  #: Text with the run's figures (run/expressions.py).
    cure: str  #: What to change, in words.
    issue: Issue  #: Where it bites in production.
    exercise: Exercise | None = None  #: A fault to repair by hand.
    transfer: Transfer | None = None  #: The same with one option changed.


class Reader(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """reader.json: what the reader of a lesson did. Nothing else records it."""

    #: Answer to each question as typed; null where none was given.
    answers: list[str | None] = field(default_factory=list)
    #: Time that the answers took; absent where nobody was asked.
    seconds: NotNegative | None = None
    transfer: list[str | None] | None = None  #: Answers before the transfer; absent before it.
    #: When the broken hosts were handed over, unix seconds; absent before.
    exercise_began: float | None = None
    hints: Count = 0  #: Hints that were given.
    solved: bool = False  #: Whether the lab applied the solution.


class PredictionResult(Record, kw_only=True, frozen=True):
    """A prediction beside what was measured."""

    question: str  #: The question.
    answer: str | None  #: The answer: a letter or a number; null where none was.
    #: Measured number in its unit, or letter of the option that holds; null where none is.
    truth: float | str | None
    unit: str | None = None  #: Unit of the number; absent for a choice.
    #: (answer - truth) / truth of a number; absent for a choice and where not known.
    error: float | None = None
    right: bool | None  #: Whether the answer is right; null without an answer or a truth.


class CheckResult(Record, kw_only=True, frozen=True):
    """A measurement of the hosts as the reader left them."""

    check: Positive  #: Number of the check.
    #: cured: every claim holds. at_a_price: the fault is gone, and a claim of price does not hold.
    #: not_yet: the fault is there. not_measured: no valid measurement.
    verdict: Literal["cured", "at_a_price", "not_yet", "not_measured"]
    cured: list[Claim]  #: Claims that a cure fulfils.
    price: list[Claim]  #: Claims that a cure without another price also fulfils.


class ExerciseResult(Record, kw_only=True, frozen=True):
    """What became of an exercise."""

    checks: list[CheckResult]  #: Each check, in order.
    hints: Count  #: Hints that were given.
    solved: bool  #: Whether the lab applied the solution.
    #: From the broken hosts to the first check that found them cured; null before.
    seconds: NotNegative | None


class LessonResult(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """lesson.json: the answers of a lesson's reader beside what was measured."""

    run_id: str  #: Name of the run's folder.
    name: str  #: Name of the lesson's file.
    predictions: list[PredictionResult]  #: Each question.
    #: Each question of the transfer; absent before it.
    transfer: list[PredictionResult] | None = None
    answered: Count  #: Questions that were answered.
    right: Count  #: Answers that are right.
    #: Median of the absolute errors of numbers; null where none was answered.
    error: NotNegative | None
    seconds: NotNegative | None  #: Time that the answers took; null if not asked.
    exercise: ExerciseResult | None = None  #: The exercise; null where it was not begun.


class Grade(Record, kw_only=True, frozen=True, omit_defaults=False):
    """A row of the table of a class: one bundle of a lesson, derived again."""

    bundle: str  #: Name of the archive.
    verified: bool  #: Whether every document follows from the raw files.
    reason: str  #: Why it is not verified; empty where it is.
    result: LessonResult | None  #: lesson.json as derived again; null where there is none.
