"""The status line of the terminal or log: what it says and when a log gets one."""

from __future__ import annotations

from loadlab.core import formatting

# Seconds a task must run before it is shown; most end or are skipped sooner.
SHOW_AFTER_S = 0.5
# Seconds a task must run before its duration is shown.
TELL_AFTER_S = 3
# Seconds between two lines of a log, where lines stay.
LOG_EVERY_S = 15


class UnderWay:
    """The tasks that are running, and the status one of them reports; times are in seconds."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, float]] = {}
        self._said = ""
        self._printed = 0.0

    def begins(self, host: str, task: str, now: float) -> None:
        """Record that a host starts a task; a host runs one at a time."""
        self._running[host] = (task, now)

    def ends(self, host: str) -> None:
        """Record that a host's task ended, and drop the reported status."""
        self._running.pop(host, None)
        self._said = ""

    def says(self, words: str) -> None:
        """Set the status of a running task, which replaces its name."""
        self._said = formatting.one_line(words)

    def over(self) -> None:
        """Record that nothing is running any more: the play or the playbook ended."""
        self._running.clear()
        self._said = ""

    def words(self, now: float) -> str:
        """Return the status line; empty where no task is old enough.

        Of several tasks it shows the oldest, which the others are waiting for or will wait for.
        """
        if self._said or not self._running:
            return self._said
        task, began = min(self._running.values(), key=lambda one: one[1])
        hosts = [host for host, (name, _) in self._running.items() if name == task]
        on = "" if hosts == ["localhost"] else f" on {', '.join(hosts)}"
        lasting = now - began
        if lasting < SHOW_AFTER_S:
            return ""
        waited = f", {formatting.lasting(lasting)}" if lasting >= TELL_AFTER_S else ""
        return f"{task}{on}{waited}"

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
