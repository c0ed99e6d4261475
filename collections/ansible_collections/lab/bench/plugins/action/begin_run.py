"""Action plugin lab.bench.begin_run: creates a run's folder, lock, plan and results/latest.

The lock lasts until this ansible-playbook ends. Fails where another process holds the run, or
another run on the same hosts. The result: ``new``, whether the run is, ``run_dir``, ``whole``,
whether the playbook has all stages, and ``makes_hosts``, whether a role of the lab makes its hosts.
"""

import os
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.plan.plan_document import Run
from loadlab.run import documents, lock
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """What is begun."""

    run_dir: Path  #: The run's folder, which it creates.
    begun: Run  #: plan.json of a new run; an existing one stays.
    #: File with the run that a new one repeats, kept in its folder; "" to repeat none.
    original: str = ""


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        run = RunDir(args.run_dir)
        new = not run.plan.exists()
        moved = not run.latest.is_symlink() or run.latest.readlink() != Path(run.path.name)
        if not self._task.check_mode:
            # The parent of this worker is ansible-playbook, which lives until its last play ends.
            lock.take(run.path, os.getppid(), args.begun.place)
            if new:
                documents.write(run.plan, documents.encode(args.begun))
                if args.original:
                    documents.write(run.original, Path(args.original).read_bytes())
            if moved:
                run.link_latest()
        # The link is every run's: another may have moved it meanwhile, which is no change here.
        return {
            "changed": new,
            "new": new,
            "run_dir": str(run.path),
            "whole": args.begun.plan.is_new,
            "makes_hosts": bool(args.begun.made_with),
        }
