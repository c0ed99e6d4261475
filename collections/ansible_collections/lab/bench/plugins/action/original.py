"""Action plugin lab.bench.original; loadlab/bundle/original.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import constants
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.bundle import original
from loadlab.report.words import reproduction_words
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import ORIGINAL


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            found = original.read(args["like"], Path(args["root"]))
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        # Ansible removes this folder when it ends.
        path = Path(constants.DEFAULT_LOCAL_TMP) / ORIGINAL
        documents.write(path, documents.encode(found))
        return {
            "path": str(path),
            "made_with": found.recipe.made_with,
            "line": reproduction_words.source(found.source),
        }
