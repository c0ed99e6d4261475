"""Action plugin lab.bench.arrive: moves files fetched from a host to their places in the run.

Also those that an earlier controller fetched and did not move; loadlab/run/arrivals.py does it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.run import arrivals


class Arguments(Struct, kw_only=True, frozen=True):
    """What was fetched from a host.

    - run_dir: the run's folder
    - arrived: the folder that the host's files are fetched into; it may be absent
    - host: the host's name
    """

    run_dir: Path
    arrived: Path
    host: str


class ActionModule(ControllerAction):
    def work(self, args: Arguments) -> dict[str, Any]:
        if self._task.check_mode:
            return {}
        moved, taken = arrivals.move(args.arrived, args.run_dir)
        for name in taken:
            tell(f"{args.host} sent {name}, which is there already: the first one stays.")
        return {"changed": bool(moved)}
