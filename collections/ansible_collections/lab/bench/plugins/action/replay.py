"""Action plugin lab.bench.replay: writes the schedule of a replay on the controller.

Its result has the ``path`` of the file. loadlab/generators/access_log.py does the work.
"""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.generators import access_log
from loadlab.plan import plan_document
from loadlab.plan.load_options.replay import log_of
from loadlab.stacks.application import is_own


class Arguments(Struct, kw_only=True, frozen=True):
    """The top directory of the lab, and the run's folder."""

    root: Path
    run_dir: Path


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        plan = plan_document.read(args.run_dir).plan
        loads = [item.cell.load for item in plan_document.items(plan.experiments)]
        replay = next(load.replay for load in loads if load.replay)
        assert plan.stack is not None
        log = log_of(
            args.root,
            plan.options.replay or "",
            plan.endpoints,
            is_own(plan.stack.app),
            replay.speed,
            replay.query,
        )
        path = args.root / ".cache" / "replays" / access_log.schedule_name(log, replay)
        return {"changed": access_log.write(log, replay, path), "path": str(path)}
