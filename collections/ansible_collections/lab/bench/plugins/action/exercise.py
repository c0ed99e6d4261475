"""Action plugin lab.bench.exercise: keeps reader.json of an exercise, and tells what comes next.

reader.json has when the exercise began, the hints shown, and whether the lab solved it. ``red`` of
the result: what to do after a check that still finds the fault, "" after anything else.
"""

import time
from pathlib import Path
from typing import Literal

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.kinds.lesson import analyse, reader, words
from loadlab.kinds.lesson import show as pages
from loadlab.model import Claims
from loadlab.plan import plan_document as plans
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """An exercise and its next stage."""

    run_dir: Path  #: The run's folder.
    root: Path  #: Top folder of the lab.
    stage: Literal["exercise", "hint", "check", "solve"]
    hosts: dict[str, dict[str, str]] = {}  #: Name -> address, user, port, key and arguments of ssh.


class ActionModule(ControllerAction[Arguments]):
    """The pages and lesson.json follow from reader.json, so they are written again with it."""

    def work(self, args: Arguments) -> dict[str, object]:
        run, stage = RunDir(args.run_dir), args.stage
        begun = plans.read(run.path)
        study = begun.plan.study
        assert study is not None
        assert study.lesson is not None
        assert study.lesson.exercise is not None
        lesson, exercise, inventory = study.lesson, study.lesson.exercise, begun.inventory_args
        before = reader.read(run.path)
        documents.write(
            run.reader, documents.encode(reader.after(stage, exercise, before, time.time()))
        )
        result = analyse.derive(run.path)
        if run.lesson_page.exists():
            for name, content in pages.pages(run.path, args.root).items():
                self.put(run.path / name, content)
        red = ""
        if stage == "check":
            assert result.exercise is not None
            last = result.exercise.checks[-1]
            lines = words.check(last, documents.read(run.claims, Claims).unmeasured)
            red = words.red(last, inventory)
            lines += [f"Page: {run.lesson_page}"] if run.lesson_page.exists() else []
            lines += [] if red else words.following(lesson, result, inventory)
        elif stage == "hint":
            lines = [words.hint(exercise, before.hints + 1)]
        elif stage == "solve":
            lines = words.solved(lesson, exercise, inventory)
        else:
            lines = words.task(exercise, args.hosts, inventory)
        for line in lines:
            tell(line)
        return {"changed": True, "red": red}
