"""Action plugin behind lab.bench.results; what it does stands in module_utils/derive.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import derive, files
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root = Path(args["run_dir"]), Path(args["root"])
        (run_dir / "logs").mkdir(exist_ok=True)
        try:
            for host, log in args["logs"].items():
                files.write(run_dir / "logs" / f"{host}.log", log.encode(errors="backslashreplace"))
            derive.results(run_dir, root, args["keep_requests"])
            derive.describe(run_dir, root, args["hosts"], args["controller"])
            table = derive.summary(run_dir, root)
        except ValueError as problem:
            raise ValueError(f"{problem}. The raw files are kept in {run_dir}.") from None
        without = {"missing": derive.missing(run_dir), "given_up": derive.given_up(run_dir)}
        return {"changed": True, "table": table, **without}
