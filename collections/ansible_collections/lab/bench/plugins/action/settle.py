"""Action plugin lab.bench.settle: completes the records of an interrupted run."""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.kinds import derive_run
from loadlab.report.words import repetitions_words


class Arguments(Struct, kw_only=True, frozen=True):
    """A run."""

    run_dir: Path  #: Its folder, with everything fetched from the hosts.
    #: Server (of its pair) and reason of each host whose files could not be fetched.
    unfetched: list[dict[str, str]] = []


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        lost = derive_run.unfinished(args.run_dir, args.unfetched)
        for unfinished in lost:
            unfinished.fail(repetitions_words.cut_off(unfinished.step, unfinished.unfetched))
            tell(f"{unfinished.repetition.place} was cut off, and is kept as failed.")
        derive_run.results(args.run_dir)
        return {"changed": bool(lost)}
