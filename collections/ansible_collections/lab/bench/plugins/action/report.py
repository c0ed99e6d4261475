"""Action plugin lab.bench.report: writes a run's report.html, and the index of all runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.kinds import run_end
from loadlab.model import Manifest, Verdict
from loadlab.plan import plan_document
from loadlab.report.render import render
from loadlab.report.words import verdict_words
from loadlab.run import documents, errors, lock
from loadlab.run.errors import LabError
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    """Builds the pages, renders the templates, and writes each file whole or not at all."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        # Imported here: matplotlib takes a second of CPU.
        from loadlab.history.index import index_page as index
        from loadlab.kinds import page as report

        run_dir = Path(args["run_dir"])
        run = RunDir(run_dir)
        path = run.report
        try:
            page = report.build(run_dir)
        except errors.ResultError as problem:
            raise LabError(
                f"{problem} in {run_dir}. Derive it again from the raw files with "
                f"ansible-playbook playbooks/collect.yml {plan_document.resume_args(run_dir)}"
            ) from problem
        changed = self.put(path, render(Path(args["template"]), page))
        if run.verdict.exists():
            changed |= self.put(run.comment, self._comment(run).encode())
        # Of two runs that end together, the later writer has read both.
        with lock.alone(run_dir.parent):
            every = index.build(run_dir.parent, own=os.getppid())
            changed |= self.put(run.index, render(index.TEMPLATE, every))
        lines = run_end.reported(run_dir, [headline.text for headline in page.headlines])
        return {"changed": changed, "path": str(path), "lines": lines}

    def _comment(self, run: RunDir) -> str:
        manifest = documents.read_or_none(run.manifest, Manifest)
        return verdict_words.comment(documents.read(run.verdict, Verdict), manifest)
