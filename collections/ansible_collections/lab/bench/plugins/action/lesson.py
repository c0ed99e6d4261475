"""Action plugin lab.bench.lesson; loadlab/kinds/lesson/show.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.kinds.lesson import show, words
from loadlab.model import Claims, LessonResult
from loadlab.plan import plan_document as plans
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        pages = show.pages(run.path, Path(args["root"]))
        changed = [self.put(run.path / name, content) for name, content in pages.items()]
        claims = documents.read(run.claims, Claims).claims
        begun = plans.read(run.path)
        assert begun.plan.study is not None
        assert begun.plan.study.lesson is not None
        found = documents.read(run.lesson, LessonResult)
        following = words.following(begun.plan.study.lesson, found, begun.inventory_args)
        text = pages[run.lesson_text.name].decode()
        if args["stage"] == "transfer":
            # The reader knows the rest.
            text = text[text.index(show.TRANSFER) :]
        return {
            "changed": any(changed),
            "lines": [
                *text.splitlines(),
                f"This page, with its picture: {run.lesson_page}",
                *following,
            ],
            "missed": [one.statement for one in claims if one.outcome != "confirmed"],
        }
