"""Action plugin lab.bench.watch: records the hosts and shows the progress until a load ends.

One scrape a second; a failed one is recorded as such, and the verdict judges the gaps. Where SSH
ended, and with it the port forward of an exporter, it connects anew.
"""

import contextlib
import math
import threading
import time
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    under_way,
)
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import Elsewhere
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain
from msgspec import Struct

from loadlab.generators.load.load_run import Scraped
from loadlab.plan import progress
from loadlab.plan.progress import Measuring
from loadlab.report.terminal.progress_line import Status
from loadlab.run.formatting import plural
from loadlab.run.run_dir import RepetitionDir
from loadlab.telemetry.exporter import forwarded
from loadlab.telemetry.recording import Recording

# Seconds between checks of a batch, whose client is the subject. Other loads are checked every
# second once their time is over.
ASK_EVERY_S = 2
# A second that is this late is left out: an unreachable host delays the check.
LATE_S = 0.5


class Arguments(Struct, kw_only=True, frozen=True):
    """A load that is under way."""

    item: Measuring
    dir: Path  #: Folder of the repetition on the controller.
    path: str  #: Of the endpoint.
    server: str = ""  #: Inventory name of the server, if there are several.
    #: warm-up and measurement together, 0 for a load without a duration; the host is asked only
    #: after that, as an overloaded server needs longer to answer what was sent.
    seconds: float
    most: float  #: Limit of the load's time, seconds.
    #: Shell command for the host, each second after ``seconds``, or every two where that is 0;
    #: status 0 means that the load has ended, and its output is the progress.
    until: str
    scrape: dict[str, Scraped]  #: Path of the recording on the controller -> host.


class ActionModule(ControllerAction[Arguments]):
    """Records each host into the repetition's folder and shows the progress."""

    _requires_connection = True

    def work(self, args: Arguments) -> dict[str, object]:
        begun = time.monotonic()
        over = threading.Event()
        with contextlib.ExitStack() as recordings:
            try:
                for path, host in args.scrape.items():
                    reconnect = None
                    if forwarded(host.exporter):
                        # Opens the port forward again.
                        reconnect = Elsewhere(self, host.name, self.variables).reconnect
                    ends_s = math.ceil(args.seconds)
                    recording = Recording(Path(path), host.exporter, over, reconnect, ends_s)
                    recordings.callback(recording.end)
                self._follow(args, begun)
            finally:
                over.set()
        return {"changed": True}

    def _follow(self, args: Arguments, begun: float) -> None:
        """Show the progress until the load is over."""
        expected = math.ceil(args.seconds)
        ask_every_s = 1 if expected else ASK_EVERY_S
        item = args.item
        kinds = item.cell.kinds
        # The paths of a mix would leave no room for the seconds.
        path = args.path if len(kinds) == 1 else f"a mix of {len(kinds)} requests"
        if item.cell.load.replay:
            path = "the requests of a log"
        if item.cell.load.session:
            path = f"a session of {plural(len(item.cell.load.session), 'request')}"
        title = progress.measurement(item, path, args.server)
        load = f"{title}, repetition {RepetitionDir(args.dir).number}"
        ends = time.time() + item.seconds_left
        for second in range(math.ceil(args.most) + 1):
            wait = begun + second - time.monotonic()
            if wait < -LATE_S:
                continue
            time.sleep(max(wait, 0.0))
            if second < expected:
                far = f"{second} of {args.seconds:.0f} s"
            elif (second - expected) % ask_every_s == 0:
                over, far = self._ask(args.until)
                if over:
                    break
            until = progress.until(ends, time.time())
            under_way(
                Status(
                    plain(self.variables["inventory_hostname"]),
                    f"{title}: {far}; {until}",
                    f"{args.server} [{item.position}/{item.total}] {far}",
                    ends,
                    load,
                )
            )

    def _ask(self, command: str) -> tuple[bool, str]:
        """Return whether the host reports the end of the load, and the progress it reports."""
        try:
            said = self._low_level_execute_command(command)
        except AnsibleConnectionFailure:
            # The load continues without a connection.
            return False, "the host is out of reach"
        return said["rc"] == 0, said["stdout"].strip()
