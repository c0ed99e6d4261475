"""Action plugin lab.bench.begin_repetition; loadlab/generators/load_run.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.generators.load_run import LoadRunInput, load_run
from loadlab.run import documents
from loadlab.run.run_dir import RepetitionDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        inputs = documents.decode(args, LoadRunInput, "the measurement")
        found = load_run(inputs)
        folder = RepetitionDir(Path(inputs.dir))
        folder.path.mkdir(parents=True, exist_ok=True)
        documents.write(folder.cell, documents.encode(found.record))
        return {"changed": True, **msgspec.to_builtins(found)}
