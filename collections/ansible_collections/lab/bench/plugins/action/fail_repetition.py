"""Action plugin lab.bench.fail_repetition: keeps a failed measurement as a record."""

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
        # Ansible decodes bytes that are not text as surrogates, which cannot be encoded again.
        error = args["error"].strip().encode(errors="backslashreplace")
        path = dest / "error.txt"
        # Two hosts may fail at once, or one host twice. The first error is the cause, so keep the
        # order.
        with lock.alone(dest):
            before = [path.read_bytes().strip()] if path.exists() else []
            documents.write(path, b"; ".join([*before, error]) + b"\n")
        return {"changed": True}
