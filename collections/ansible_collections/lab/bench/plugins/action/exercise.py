"""Action plugin lab.bench.exercise: keeps reader.json of an exercise, and tells what comes next."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.core import documents
from loadlab.core.model import Claims, Exercise, LessonResult
from loadlab.core.run_dir import RunDir
from loadlab.planning.lessons import reader
from loadlab.report.words import lessons as words


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run, stage = RunDir(Path(args["run_dir"])), args["stage"]
        exercise = documents.decode(args["exercise"], Exercise, "exercise")
        before = reader.read(run.path)
        now = reader.after(stage, exercise, before, time.time())
        cured = False
        if stage == "check":
            cured, lines = self._check(run)
        elif stage == "hint":
            lines = [words.hint(exercise, before.hints + 1)]
        elif stage == "solve":
            lines = words.solved(exercise)
        else:
            lines = words.task(exercise, args["hosts"])
        for line in lines:
            tell(line)
        changed = now != before and self.put(run.reader, documents.encode(now))
        return {"changed": changed, "cured": cured}

    def _check(self, run: RunDir) -> tuple[bool, list[str]]:
        found = documents.read(run.lesson, LessonResult).exercise
        if found is None or not found.checks:
            return False, []
        last = found.checks[-1]
        unmeasured = documents.read(run.claims, Claims).unmeasured
        return last.verdict in ("cured", "at_a_price"), words.check(last, unmeasured)
