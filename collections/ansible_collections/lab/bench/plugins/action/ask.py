"""Action plugin lab.bench.ask: asks the questions of a lesson before it is measured.

Without a terminal it asks nothing and says so. ``reader`` of the result: the content of
reader.json. loadlab/plan/lessons checks the answers.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ansible.errors import AnsiblePromptInterrupt, AnsiblePromptNoninteractive
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.kinds.lesson import reader, words
from loadlab.model import PlannedStudy, Prediction
from loadlab.run.errors import PlanError


class Arguments(Struct, kw_only=True, frozen=True):
    """Questions of a lesson."""

    run_dir: Path  #: The run's folder; a run that has the answers asks nothing.
    study: PlannedStudy  #: The lesson, as the plan has it.
    stage: Literal["run", "transfer"]
    #: Answers, one for each question with commas between, or none; "" to be asked in the terminal.
    predict: str = ""


class ActionModule(ControllerAction[Arguments]):
    """Takes the answers from ``predict``, or asks for them in the terminal."""

    def work(self, args: Arguments) -> dict[str, object]:
        record = reader.read(args.run_dir)
        # The reader answered the questions when the run began.
        if not reader.is_answered(args.stage, record):
            question, predictions = reader.questions(args.stage, args.study)
            answered: tuple[list[str | None], float | None]
            if args.predict:
                # Answers that were typed before took no time here.
                answered = reader.of_option(args.predict, predictions), None
            else:
                answered = self._ask(question, predictions)
            record = reader.answered(args.stage, record, *answered)
        return {"reader": record}

    def _ask(
        self, question: str, predictions: Sequence[Prediction]
    ) -> tuple[list[str | None], float | None]:
        """Return the answers and the seconds that they took; None of each without a terminal."""
        began = time.monotonic()
        typed: list[str | None] = []
        tell(question)
        for number, prediction in enumerate(predictions, 1):
            try:
                answer = self._answer(prediction, words.ask(prediction, number, len(predictions)))
            except AnsiblePromptNoninteractive:
                tell(words.NO_TERMINAL)
                return [None] * len(predictions), None
            except AnsiblePromptInterrupt:
                raise PlanError(
                    "The questions were interrupted. The same command asks them again."
                ) from None
            # Ansible clears the line that was typed.
            tell(f"Your answer: {words.answer(answer, prediction)}")
            typed.append(answer)
        return typed, round(time.monotonic() - began, 1)

    def _answer(self, prediction: Prediction, question: str) -> str | None:
        """Ask until the answer fits the question; None for an empty one."""
        while True:
            word = Display().prompt_until(f"\n{question}: ").decode(errors="replace").strip()
            if not word:
                return None
            try:
                return reader.answer(word, prediction)
            except ValueError as problem:
                tell(str(problem))
