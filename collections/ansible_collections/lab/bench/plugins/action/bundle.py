"""Action plugin lab.bench.bundle; loadlab/bundle/archive.py does the work."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.bundle import signature
from loadlab.bundle.archive import BundleError, pack, refuse
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results, run_id = Path(args["results"]), args["run_id"]
        key = Path(args["sign"]) if args["sign"] else None
        run_dir = (results / run_id).resolve()
        refuse(results, run_id)
        if key:
            signature.refuse_key(key)
        archive = RunDir(run_dir).bundle
        before = documents.digest(archive.read_bytes()) if archive.exists() else None
        if self._task.check_mode:
            return {"changed": before is None, "path": str(archive)}
        # The process that Ansible was started as has the terminal, this one was detached from it.
        terminal = signature.terminal_of(os.getppid())
        sign = partial(signature.sign, key=key, terminal=terminal, announce=tell) if key else None
        try:
            packed = pack(run_dir, archive, sign)
        except BundleError as refusal:
            raise BundleError(f"run_id: '{run_id}' {refusal}. Nothing was written.") from None
        return {"changed": packed["sha256"] != before, "path": str(archive), **packed}
