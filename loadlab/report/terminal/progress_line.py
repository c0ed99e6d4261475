"""The status line of the terminal or log: what it says and when a log gets one."""

import time

from msgspec import Struct

from loadlab.plan import progress
from loadlab.run import formatting

# Seconds a task must run before it is shown; most end or are skipped sooner.
SHOW_AFTER_S = 0.5
# Seconds a task must run before its duration is shown.
TELL_AFTER_S = 3
# Seconds between two lines of a log, where lines stay.
LOG_EVERY_S = 15


class Status(Struct, frozen=True):
    """What a running task reports of itself."""

    host: str  #: Whose task it is.
    words: str  #: The whole status.
    #: The same beside those of other hosts; "" where no other reports at the same time.
    part: str = ""
    ends: float = 0.0  #: When all of the host's loads are over, unix seconds.
    load: str = ""  #: The repetition that is under way; "" for no load.


class UnderWay:
    """The tasks that are running, and the statuses that they report; times are in seconds."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, float]] = {}
        self._said: dict[str, Status] = {}
        self._printed = 0.0

    def begins(self, host: str, task: str, now: float) -> None:
        """Record that a host starts a task; a host runs one at a time."""
        self._running[host] = (task, now)

    def ends(self, host: str) -> None:
        """Record that a host's task ended, and drop the status that it reported."""
        self._running.pop(host, None)
        self._said.pop(host, None)

    def says(self, status: Status) -> None:
        """Set the status of a host's running task, which replaces its name."""
        self._said[status.host] = status

    def over(self) -> None:
        """Record that nothing is running any more: the play or the playbook ended."""
        self._running.clear()
        self._said.clear()

    def cut_off(self) -> str:
        """Return the loads that are under way, and that they run on, else the task that runs
        longest, as " during a load" or " at a task"; empty where nothing runs."""
        if loads := [said.load for _, said in sorted(self._said.items()) if said.load]:
            return (
                f" during {'; '.join(loads)}. On the client the load runs on to its planned end; "
                "the next run stops it"
            )
        if self._running:
            return f" at the task '{self._oldest()[0]}'"
        return ""

    def words(self, now: float) -> str:
        """Return the status line; empty where no task is old enough.

        It has each status that is reported. Of several tasks without one it shows the oldest, which
        the others are waiting for or will wait for.
        """
        if self._said:
            return formatting.one_line(self._statuses())
        if not self._running:
            return ""
        task, began = self._oldest()
        hosts = [host for host, (name, _) in self._running.items() if name == task]
        on = "" if hosts == ["localhost"] else f" on {', '.join(hosts)}"
        lasting = now - began
        if lasting < SHOW_AFTER_S:
            return ""
        waited = f", {formatting.lasting(lasting)}" if lasting >= TELL_AFTER_S else ""
        return f"{task}{on}{waited}"

    def _oldest(self) -> tuple[str, float]:
        """Return the task that runs longest, and when it began."""
        return min(self._running.values(), key=lambda running: running[1])

    def _statuses(self) -> str:
        said = [self._said[host] for host in sorted(self._said)]
        if len(said) == 1:
            return said[0].words
        parts = ", ".join(status.part for status in said)
        return f"{parts}; {progress.until(max(last.ends for last in said), time.time())}"

    def printed(self, now: float) -> None:
        """Record that something was printed, so a log needs no line for a while."""
        self._printed = now

    def due(self, now: float) -> str:
        """Return the line that a log gets now; empty where none is due.

        None is due within LOG_EVERY_S of the last line of any kind, or of the start of the oldest
        task.
        """
        begun = min((began for _, began in self._running.values()), default=now)
        silent = now - max(self._printed, begun) if self._running else 0.0
        return self.words(now) if silent >= LOG_EVERY_S else ""


def cut(line: str, columns: int) -> str:
    """Return a line cut to fit a terminal of ``columns``.

    The last column stays free, as a character there would start a new line.
    """
    return line if len(line) < columns else f"{line[: max(columns - 2, 0)]}…"
