"""Action plugin behind lab.bench.calibration; see module_utils/calibration.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils import calibration, derive, files
from ansible_collections.lab.bench.plugins.module_utils.validate import validate
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[dict[str, Any]] = {
        "run_dir": {"type": "path", "required": True},
        "repetition": {"type": "int", "required": True},
        "link": {"type": "dict", "required": True},
        "generator": {"type": "str", "required": True},
        "root": {"type": "path", "required": True},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root = Path(args["run_dir"]), Path(args["root"])
        link = run_dir / "calibration" / "link" / f"rep-{args['repetition']}"
        link.mkdir(parents=True)
        for name, text in args["link"].items():
            files.write(link / name, text.encode())
        try:
            derived = calibration.derive(
                run_dir / "calibration",
                args["repetition"],
                args["generator"],
                derive.thresholds(run_dir, root),
            )
        except ValueError as problem:
            raise ValueError(
                f"{problem}. The raw files are kept in {run_dir}/calibration."
            ) from None
        validate(derived, "calibration", root / "files" / "schema" / "lab-1.schema.json")
        files.write(run_dir / "calibration.json", files.dump(derived))
        return {"changed": True, "calibration": derived, "text": calibration.text(derived)}
