"""Action plugin lab.bench.results; loadlab/kinds/derive_run.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.history.reproduction import build_reproduction as reproduction
from loadlab.kinds import derive_run, run_end
from loadlab.report.words import disturbances, repetitions_words
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root = Path(args["run_dir"]), Path(args["root"])
        run = RunDir(run_dir)
        run.logs.mkdir(exist_ok=True)
        try:
            for host, log in args["logs"].items():
                documents.write(run.log(host), log.encode(errors="backslashreplace"))
            derive_run.results(run_dir)
            instances = {name: one for name, one in args["instances"].items() if one}
            derive_run.describe(run_dir, root, args["hosts"], args["controller"], instances)
            table = run_end.derived(run_dir, *derive_run.summary(run_dir))
            reproduction.write(run_dir)
        except LabError as problem:
            raise LabError(f"{problem}. The raw files are kept in {run_dir}.") from None
        unmeasured = [repetitions_words.unmeasured(one) for one in derive_run.unmeasured(run_dir)]
        abandoned = [
            repetitions_words.abandoned(*one) for one in derive_run.abandoned(run_dir).items()
        ]
        void = derive_run.void_reasons(run_dir)
        return {
            "changed": True,
            "table": table,
            "unmeasured": unmeasured,
            "resume": run_end.resumed(run_dir),
            "void": disturbances.nothing_valid(void, run_end.more_repetitions(run_dir)),
            "abandoned": unmeasured if derive_run.is_without_best(run_dir) else abandoned,
        }
