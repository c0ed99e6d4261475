"""Action plugin lab.bench.ask: asks the questions of a lesson; loadlab/planning/lessons checks the
answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsiblePromptInterrupt, AnsiblePromptNoninteractive
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
    tell,
)

from loadlab.core import documents
from loadlab.core.errors import PlanError
from loadlab.core.model import Lesson, Prediction, Reader
from loadlab.core.run_dir import RunDir
from loadlab.planning.lessons import answers
from loadlab.report.words import lessons as words


class ActionModule(ControllerAction):
    """Takes the answers from ``predict``, or asks for them in the terminal."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        asked = documents.decode(args["lesson"], Lesson, "lesson").predictions
        kept = RunDir(Path(args["run_dir"])).reader
        if kept.exists():
            reader = documents.read(kept, Reader)
        elif args["predict"]:
            try:
                reader = Reader(answers=answers.given(args["predict"], asked))
            except PlanError as refusal:
                raise PlanError(f"{refusal} Nothing was changed.") from None
        else:
            reader = self._ask(args["question"], asked)
        return {"reader": for_ansible(reader)}

    def _ask(self, question: str, asked: list[Prediction]) -> Reader:
        began = time.monotonic()
        given: list[str | None] = []
        tell(question)
        for number, prediction in enumerate(asked, 1):
            try:
                given.append(self._answer(prediction, words.ask(prediction, number, len(asked))))
            except AnsiblePromptNoninteractive:
                tell(words.NO_TERMINAL)
                return Reader(answers=[None] * len(asked))
            except AnsiblePromptInterrupt:
                raise PlanError("The questions were interrupted. Nothing was changed.") from None
        return Reader(answers=given, seconds=round(time.monotonic() - began, 1))

    def _answer(self, prediction: Prediction, question: str) -> str | None:
        """Ask until the answer fits the question; None for an empty one."""
        while True:
            word = Display().prompt_until(f"\n{question}: ").decode(errors="replace").strip()
            if not word:
                return None
            try:
                return answers.answer(word, prediction)
            except ValueError as problem:
                tell(str(problem))
