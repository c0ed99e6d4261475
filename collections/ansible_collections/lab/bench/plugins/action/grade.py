"""Action plugin lab.bench.grade; loadlab/bundle/grade.py does the work."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.bundle import grade
from loadlab.kinds.lesson import words


class ActionModule(ControllerAction):
    """Writes grades.csv into the folder of the bundles."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        found = list(grade.grades(args["bundles"], Path(args["root"])))
        rows = [words.grade(one) for one in found]
        text = io.StringIO()
        csv.writer(text).writerows([words.GRADES, *map(_inert, rows)])
        path = Path(args["bundles"]) / "grades.csv"
        changed = self.put(path, text.getvalue().encode())
        lines = [*words.table(rows), *words.graded(found)]
        return {"changed": changed, "path": str(path), "lines": lines}


def _inert(row: list[str]) -> list[str]:
    """Return a row in which a spreadsheet takes no word of a bundle for a formula."""
    return [f"'{word}" if word[:1] in "=+@\t\r" and word else word for word in row]
