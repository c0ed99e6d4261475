"""Action plugin behind lab.bench.calibration; see module_utils/calibration.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import calibration, derive, files
from ansible_collections.lab.bench.plugins.module_utils.validate import validate
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root, name = Path(args["run_dir"]), Path(args["root"]), args["name"]
        link = run_dir / name / "link" / f"rep-{args['repetition']}"
        link.mkdir(parents=True)
        for file, text in args["link"].items():
            files.write(link / file, text.encode(errors="backslashreplace"))
        try:
            derived = calibration.derive(
                run_dir / name,
                args["repetition"],
                args["generator"],
                derive.thresholds(run_dir, root),
            )
        except ValueError as problem:
            raise ValueError(f"{problem}. The raw files are kept in {run_dir}/{name}.") from None
        validate(derived, "calibration", root / "files" / "schema" / "lab-1.schema.json")
        files.write(run_dir / f"{name}.json", files.dump(derived))
        return {"changed": True, "calibration": derived, "text": calibration.text(derived)}
