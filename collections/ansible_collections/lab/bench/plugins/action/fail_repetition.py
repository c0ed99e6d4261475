"""Action plugin behind lab.bench.fail_repetition: a failed measurement stays as a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import documents, lock


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        dest = Path(args["dest"])
        dest.mkdir(parents=True, exist_ok=True)
        if not (dest / "cell.json").exists():
            documents.write(dest / "cell.json", documents.dump(args["record"]))
        # Ansible keeps bytes of a host that are no text as surrogates, which cannot be written.
        error = args["error"].strip().encode(errors="backslashreplace")
        path = dest / "error.txt"
        # Two hosts may fail at once, or one of them twice; what was first is the cause.
        with lock.alone(dest):
            before = [path.read_bytes().strip()] if path.exists() else []
            documents.write(path, b"; ".join([*before, error]) + b"\n")
        return {"changed": True}
