"""Action plugin lab.bench.results; loadlab/analysis/derive.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.analysis import derive
from loadlab.core import documents
from loadlab.core.run_dir import RunDir
from loadlab.report.terminal import run_end
from loadlab.report.words import disturbances, repetitions
from loadlab.reproduction import document as reproduction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root = Path(args["run_dir"]), Path(args["root"])
        run = RunDir(run_dir)
        run.logs.mkdir(exist_ok=True)
        try:
            for host, log in args["logs"].items():
                documents.write(run.log(host), log.encode(errors="backslashreplace"))
            derive.results(run_dir)
            instances = {name: one for name, one in args["instances"].items() if one}
            derive.describe(run_dir, root, args["hosts"], args["controller"], instances)
            table = run_end.derived(run_dir, *derive.summary(run_dir))
            reproduction.write(run_dir)
        except ValueError as problem:
            raise ValueError(f"{problem}. The raw files are kept in {run_dir}.") from None
        unmeasured = [repetitions.unmeasured(one) for one in derive.unmeasured(run_dir)]
        abandoned = [repetitions.abandoned(*one) for one in derive.abandoned(run_dir).items()]
        void = derive.void_reasons(run_dir)
        return {
            "changed": True,
            "table": table,
            "unmeasured": unmeasured,
            "resume": run_end.resumed(run_dir),
            "void": disturbances.nothing_valid(void, run_end.more_repetitions(run_dir)),
            "abandoned": unmeasured if derive.is_without_best(run_dir) else abandoned,
        }
