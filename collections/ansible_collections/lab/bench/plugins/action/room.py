"""Action plugin lab.bench.room; loadlab/plan/needs.py does the work."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.plan import needs
from loadlab.plan.needs import Room
from loadlab.plan.plan_document import HostNeeds, Needs, Plan
from loadlab.report.words import needs_words as words
from loadlab.run.errors import PlanError

_NONE = HostNeeds(disk_bytes=0, memory_bytes=0)


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        plan = decode(args["plan"], Plan)
        # Hosts are made even where nothing is to be measured.
        found = plan.needs or Needs(client=_NONE, server=_NONE, controller=_NONE, temporary_bytes=0)
        results, temporary = Path(args["root"]), Path(tempfile.gettempdir())
        try:
            needs.refuse_controller(
                found,
                _room(results),
                _room(temporary),
                results.stat().st_dev == temporary.stat().st_dev,
                args["hosts"],
                args["base_bytes"],
            )
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        return {"line": words.told(plan.needs) if plan.needs else ""}


def _room(path: Path) -> Room:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return Room(
        disk_bytes=shutil.disk_usage(path).free,
        memory_bytes=int(fields["MemAvailable"].split()[0]) * 1024,
    )
