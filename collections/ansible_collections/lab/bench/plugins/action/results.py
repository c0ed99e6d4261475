"""Action plugin lab.bench.results; loadlab/analysis/derive.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.analysis import derive
from loadlab.core import documents
from loadlab.report import terminal


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root = Path(args["run_dir"]), Path(args["root"])
        (run_dir / "logs").mkdir(exist_ok=True)
        try:
            for host, log in args["logs"].items():
                documents.write(
                    run_dir / "logs" / f"{host}.log", log.encode(errors="backslashreplace")
                )
            derive.results(run_dir, root, args["keep_requests"])
            derive.describe(run_dir, root, args["hosts"], args["controller"])
            table = terminal.tables(*derive.summary(run_dir, root))
        except ValueError as problem:
            raise ValueError(f"{problem}. The raw files are kept in {run_dir}.") from None
        without = {"missing": derive.missing(run_dir), "given_up": derive.given_up(run_dir)}
        return {"changed": True, "table": table, **without}
