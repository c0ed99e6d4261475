"""Action plugin lab.bench.next: decides what a host pair measures next, and prints the last result.

Its result: ``item``: the measurement, None where nothing is left, ``left``: the likely number of
those to come, and ``began``: the start of this invocation. loadlab/kinds/turns.py decides.
"""

import time
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.kinds import turns
from loadlab.kinds.turns import Last
from loadlab.plan.plan_document import Setup


class Arguments(Struct, kw_only=True, frozen=True):
    """A host pair, and what it did last."""

    run_dir: Path  #: The run's folder.
    pair: int  #: Number of the host pair, from 0.
    #: What the earlier stages applied to the hosts; None where it is not known.
    set_up: Setup | None = None
    last: Last | None = None  #: The result before the last measurement; None at the start.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        turn = turns.take(args.run_dir, args.pair, args.last, args.set_up, time.time())
        for line in turns.lines(turn):
            tell(line)
        return {"item": turn.following, "left": turn.left, "began": turn.began}
