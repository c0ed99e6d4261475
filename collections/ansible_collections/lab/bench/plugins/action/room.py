"""Action plugin lab.bench.room: refuses a controller with too little disk or memory for a run.

``line`` of the result: what the run needs on each machine, "" where nothing is to be measured.
loadlab/plan/needs.py does the work.
"""

import shutil
import tempfile
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.plan import needs
from loadlab.plan.needs import Room
from loadlab.plan.plan_document import HostNeeds, Needs, Plan
from loadlab.report.words import planned_words

_NONE = HostNeeds(disk_bytes=0, memory_bytes=0)


class Arguments(Struct, kw_only=True, frozen=True):
    """A run, and the machine that it is begun on."""

    plan: Plan
    root: Path  #: Top folder of the lab, which has results/.
    hosts: int = 0  #: Number of host pairs that are containers of the controller.
    base_bytes: int = 0  #: What these need besides the measurements.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        # Hosts are made even where nothing is to be measured.
        room = args.plan.needs or Needs(
            client=_NONE, server=_NONE, controller=_NONE, temporary_bytes=0
        )
        results, temporary = args.root, Path(tempfile.gettempdir())
        needs.refuse_controller(
            room,
            _room(results),
            _room(temporary),
            results.stat().st_dev == temporary.stat().st_dev,
            args.hosts,
            args.base_bytes,
        )
        return {"line": planned_words.needs(args.plan.needs) if args.plan.needs else ""}


def _room(path: Path) -> Room:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return Room(
        disk_bytes=shutil.disk_usage(path).free,
        memory_bytes=int(fields["MemAvailable"].split()[0]) * 1024,
    )
