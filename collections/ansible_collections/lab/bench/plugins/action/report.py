"""Action plugin lab.bench.report: writes a run's report.html, and the index of all runs.

The same files give the same pages. ``lines`` of the result: a sentence on each comparison and each
cell, the path of the report and the next commands.
"""

import os
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.kinds import all_kinds, run_end
from loadlab.plan import plan_document
from loadlab.report.render import render
from loadlab.run import errors, lock
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """The run's folder, and the page's Jinja template."""

    run_dir: Path
    template: Path


class ActionModule(ControllerAction[Arguments]):
    """Builds the pages, renders the templates, and writes each file whole or not at all."""

    def work(self, args: Arguments) -> dict[str, object]:
        # Imported here: matplotlib takes a second of CPU.
        from loadlab.history.index import index_page as index
        from loadlab.kinds import page as report

        run_dir = args.run_dir
        run = RunDir(run_dir)
        try:
            page = report.build(run_dir)
        except errors.ResultError as problem:
            raise errors.LabError(
                f"{problem} in {run_dir}. Derive it again from the raw files with "
                f"ansible-playbook playbooks/collect.yml {plan_document.resume_args(run_dir)}"
            ) from problem
        changed = self.put(run.report, render(args.template, page))
        for own, content in all_kinds.of_run(run_dir).pages(run).items():
            changed |= self.put(own, content)
        # Of two runs that end together, the later writer has read both.
        with lock.alone(run_dir.parent):
            every = index.build(run_dir.parent, own=os.getppid())
            changed |= self.put(run.index, render(index.TEMPLATE, every))
        lines = run_end.reported(run_dir, [headline.text for headline in page.headlines])
        return {"changed": changed, "path": str(run.report), "lines": lines}
