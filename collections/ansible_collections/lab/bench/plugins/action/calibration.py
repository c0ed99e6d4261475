"""Action plugin lab.bench.calibration; see calibration.py and calibration_reuse.py in
loadlab/analysis."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.analysis import calibration, calibration_reuse, derive
from loadlab.core import documents


class ActionModule(ControllerAction):
    """Derives the present calibration or, without ``link``, reuses the newest of the same
    conditions."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        recorded = run_dir / "tuning.json"
        conditions = calibration_reuse.conditions(
            args["conditions"],
            documents.load(recorded) if recorded.exists() else {},
            args["hosts"],
        )
        if args["link"] is None:
            return self._earlier(args, conditions)
        link = run_dir / args["name"] / "link" / f"rep-{args['repetition']}"
        link.mkdir(parents=True)
        for file, text in args["link"].items():
            documents.write(link / file, text.encode(errors="backslashreplace"))
        record = {"run_id": run_dir.name, "measured": time.time(), "conditions": conditions}
        documents.write(link / calibration_reuse.CONDITIONS, documents.dump(record))
        try:
            derived = self._derived(args, args["repetition"])
        except ValueError as problem:
            raise ValueError(
                f"{problem}. The raw files are kept in {run_dir}/{args['name']}."
            ) from None
        return {"changed": True, "found": True, **derived}

    def _earlier(self, args: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        folder = Path(args["run_dir"]) / args["name"]
        now, number = time.time(), args["repetition"]
        usable = list(calibration_reuse.found(folder.parents[1], conditions, now))
        for own in usable:
            if own.folder == folder and own.number == calibration.numbers(folder)[-1]:
                # The run uses it already.
                return {"found": True, "said": own.said(now), **self._derived(args, own.number)}
        for earlier in usable:
            calibration_reuse.copy(earlier, folder, number)
            try:
                derived = self._derived(args, number)
            except ValueError:
                # Its files were changed or damaged, so it is no longer a calibration.
                calibration_reuse.drop(folder, number)
                continue
            return {"changed": True, "found": True, "said": earlier.said(now), **derived}
        return {"found": False}

    def _derived(self, args: dict[str, Any], number: int) -> dict[str, Any]:
        run_dir, root, name = Path(args["run_dir"]), Path(args["root"]), args["name"]
        document = calibration.derive(
            run_dir / name, number, args["generator"], derive.thresholds(run_dir, root)
        )
        derive.write(document, "calibration", run_dir / f"{name}.json", root)
        return {"calibration": document, "text": calibration.text(document)}
