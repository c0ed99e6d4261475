"""Action plugin lab.bench.exercise: keeps reader.json of an exercise, and tells what comes next."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec.structs import replace

from loadlab.analysis.lessons import document
from loadlab.core import documents
from loadlab.core.errors import PlanError
from loadlab.core.model import Exercise, LessonResult, Reader
from loadlab.core.run_dir import RunDir
from loadlab.report.words import lessons as words


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        exercise = documents.decode(args["exercise"], Exercise, "exercise")
        before = document.reader(run.path)
        if args["stage"] != "exercise" and before.exercise_began is None:
            raise PlanError(
                f"stage: {args['stage']} comes after the exercise has begun. Begin it with "
                "ansible-playbook playbooks/lesson.yml -e stage=exercise"
            )
        if args["stage"] == "check":
            return self._check(run)
        now, lines = self._next(args["stage"], exercise, before, args["hosts"])
        for line in lines:
            tell(line)
        return {"changed": self.put(run.reader, documents.encode(now)), "cured": False}

    def _next(
        self, stage: str, exercise: Exercise, before: Reader, hosts: dict[str, dict[str, str]]
    ) -> tuple[Reader, list[str]]:
        if stage == "hint":
            number = before.hints + 1
            given = min(number, len(exercise.hints))
            return replace(before, hints=given), [words.hint(exercise, number)]
        if stage == "solve":
            return replace(before, solved=True), words.solved(exercise)
        began = before.exercise_began or time.time()
        return replace(before, exercise_began=began), words.task(exercise, hosts)

    def _check(self, run: RunDir) -> dict[str, Any]:
        found = documents.read(run.lesson, LessonResult).exercise
        checks = found.checks if found else []
        for line in words.check(checks[-1]) if checks else []:
            tell(line)
        return {"cured": bool(checks) and checks[-1].verdict in ("cured", "at_a_price")}
