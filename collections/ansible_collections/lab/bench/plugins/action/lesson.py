"""Action plugin lab.bench.lesson: writes the pages of a lesson with the figures just measured.

Its result: ``lines``: the text, the path of the page and the next commands; ``missed``: the claims
that were not confirmed. loadlab/kinds/lesson/show.py does the work.
"""

from pathlib import Path
from typing import Literal

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.kinds.lesson import show, words
from loadlab.model import Claims, LessonResult
from loadlab.plan import plan_document as plans
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """A lesson that was measured."""

    run_dir: Path  #: The run's folder.
    root: Path  #: Top folder of the lab.
    #: After a transfer the lines have that part of the page alone.
    stage: Literal["run", "transfer"]


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        run = RunDir(args.run_dir)
        pages = show.pages(run.path, args.root)
        changed = [self.put(run.path / name, content) for name, content in pages.items()]
        claims = documents.read(run.claims, Claims).claims
        begun = plans.read(run.path)
        assert begun.plan.study is not None
        assert begun.plan.study.lesson is not None
        result = documents.read(run.lesson, LessonResult)
        following = words.following(begun.plan.study.lesson, result, begun.inventory_args)
        text = pages[run.lesson_text.name].decode()
        if args.stage == "transfer":
            # The reader knows the rest.
            text = text[text.index(show.TRANSFER) :]
        page = f"This page, with its picture: {run.lesson_page}"
        return {
            "changed": any(changed),
            "lines": [*text.splitlines(), page, *following],
            "missed": [claim.statement for claim in claims if claim.outcome != "confirmed"],
        }
