"""Action plugin lab.bench.ask: asks the questions of a lesson; loadlab/plan/lessons checks the
answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsiblePromptInterrupt, AnsiblePromptNoninteractive
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
    tell,
)

from loadlab.kinds.lesson import reader, reader_answers, words
from loadlab.model import PlannedStudy, Prediction
from loadlab.run import documents
from loadlab.run.errors import PlanError


class ActionModule(ControllerAction):
    """Takes the answers from ``predict``, or asks for them in the terminal."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        study = documents.decode(args["study"], PlannedStudy, "study")
        kept = reader.read(Path(args["run_dir"]))
        # The reader answered the questions when the run began.
        if not reader.is_asked(args["stage"], kept):
            question, asked = reader.questions(args["stage"], study)
            kept = reader.answered(args["stage"], kept, *self._answers(args, question, asked))
        return {"reader": for_ansible(kept)}

    def _answers(
        self, args: dict[str, Any], question: str, asked: Sequence[Prediction]
    ) -> tuple[list[str | None], float | None]:
        """Return the answers and the seconds that they took."""
        if not args["predict"]:
            return self._ask(question, asked)
        try:
            return reader_answers.given(args["predict"], asked), None
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None

    def _ask(
        self, question: str, asked: Sequence[Prediction]
    ) -> tuple[list[str | None], float | None]:
        began = time.monotonic()
        given: list[str | None] = []
        tell(question)
        for number, prediction in enumerate(asked, 1):
            try:
                answer = self._answer(prediction, words.ask(prediction, number, len(asked)))
            except AnsiblePromptNoninteractive:
                tell(words.NO_TERMINAL)
                return [None] * len(asked), None
            except AnsiblePromptInterrupt:
                raise PlanError("The questions were interrupted. Nothing was changed.") from None
            # Ansible clears the line that was typed.
            tell(f"Your answer: {words.given(answer, prediction)}")
            given.append(answer)
        return given, round(time.monotonic() - began, 1)

    def _answer(self, prediction: Prediction, question: str) -> str | None:
        """Ask until the answer fits the question; None for an empty one."""
        while True:
            word = Display().prompt_until(f"\n{question}: ").decode(errors="replace").strip()
            if not word:
                return None
            try:
                return reader_answers.answer(word, prediction)
            except ValueError as problem:
                tell(str(problem))
