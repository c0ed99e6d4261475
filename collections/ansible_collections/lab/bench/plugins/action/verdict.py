"""Action plugin lab.bench.verdict: gives ansible-playbook the exit status of a run's verdict.

The callback lab.bench.playbook ends with it, unless a task failed.
"""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.kinds import all_kinds
from loadlab.model import Verdict
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """The run's folder, and whether a metric that is undecided gives a status of its own."""

    run_dir: Path
    undecided_fails: bool = False


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        run = RunDir(args.run_dir)
        status = all_kinds.of_run(run.path).exit_status(run, undecided_fails=args.undecided_fails)
        answer = documents.read(run.verdict, Verdict).answer
        return {"answer": answer, "exit_status": status}
