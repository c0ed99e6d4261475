"""Action plugin behind lab.bench.next: what a pair measures next; see module_utils/schedule.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils import derive, files, records, schedule
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell


class ActionModule(ControllerAction):
    """Derive what was measured last, tell what came of it, and choose the next."""

    SPEC: ClassVar[dict[str, Any]] = {
        "run_dir": {"type": "path", "required": True},
        "root": {"type": "path", "required": True},
        "keep_requests": {"type": "bool", "default": False},
        "pair": {"type": "int", "required": True},
        "set_up": {"type": "dict"},
        "last": {"type": "dict"},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, last = Path(args["run_dir"]), args["last"]
        plan = files.load(run_dir / "plan.json")["plan"]
        if last is None:
            since, before = schedule.highest(records.load(run_dir)), args["set_up"]
        else:
            item, since = last["item"], last["since"]
            rep_dir = run_dir / "cells" / item["cell_id"] / f"rep-{item['repetition']}"
            derive.repetition(rep_dir, Path(args["root"]), args["keep_requests"])
            found = files.load(rep_dir / "result.json")
            tell(f"    {derive.told(found)}")
            before = None if found["error"] else schedule.setup(item)
        kept = records.load(run_dir)
        attempts = schedule.failures(kept, since)
        item = schedule.next_item(plan, kept, attempts, before, args["pair"])
        left = 0 if item is None else item["total"] - item["position"] + 1
        return {"item": item, "left": left, "since": since}
