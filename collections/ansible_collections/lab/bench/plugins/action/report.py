"""Action plugin lab.bench.report: writes a run's report.html."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import errors
from loadlab.report import run_end
from loadlab.scheduling import records


class ActionModule(ControllerAction):
    """Builds the report's dict, renders the template, and writes report.html whole or not
    at all."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        # Imported here: matplotlib takes a second of CPU.
        from loadlab.report import page as report

        run_dir = Path(args["run_dir"])
        path = run_dir / "report.html"
        try:
            document = report.build(run_dir)
        except errors.ResultError as problem:
            raise ValueError(
                f"{problem} in {run_dir}. Derive it anew from the raw files with "
                f"ansible-playbook playbooks/collect.yml {records.go_on(run_dir)}"
            ) from problem
        page = report.render(Path(args["template"]), document)
        changed = self.put(path, page)
        said = [headline["text"] for headline in document["headlines"]]
        return {"changed": changed, "path": str(path), "lines": run_end.lines(run_dir, said)}
