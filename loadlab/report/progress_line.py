"""The one line for what is under way: what it says, and where there is no terminal, when. Pure."""

from __future__ import annotations

from loadlab.core import formatting

# A younger task is not shown: most are over, or skipped, by then.
SHOW_AFTER_S = 0.5
# And a younger one tells no seconds.
TELL_AFTER_S = 3
# Between two lines of a log, which keeps them all.
LOG_EVERY_S = 15


class UnderWay:
    """The tasks that run now, and what one of them says of itself; times are in seconds."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, float]] = {}
        self._said = ""
        self._printed = 0.0

    def begins(self, host: str, task: str, now: float) -> None:
        """A host begins with a task; it does one at a time."""
        self._running[host] = (task, now)

    def ends(self, host: str) -> None:
        """A host's task is over, and what was said of it."""
        self._running.pop(host, None)
        self._said = ""

    def says(self, words: str) -> None:
        """What a task that runs now says of itself, in place of its name."""
        self._said = formatting.one_line(words)

    def over(self) -> None:
        """Nothing is under way: the play or the playbook has come to its end."""
        self._running.clear()
        self._said = ""

    def words(self, now: float) -> str:
        """What is under way; nothing where no task is old enough to tell. Of several the oldest is
        told, for the others wait for it, or will."""
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
        """Something was printed: a log needs no line for a while."""
        self._printed = now

    def due(self, now: float) -> str:
        """The line that a log gets now; nothing where it had one of any kind a moment ago, or where
        every task is younger than that."""
        begun = min((began for _, began in self._running.values()), default=now)
        silent = now - max(self._printed, begun) if self._running else 0.0
        return self.words(now) if silent >= LOG_EVERY_S else ""


def cut(line: str, columns: int) -> str:
    """A line that fits a terminal with so many columns, the last of which stays free: a character
    there would begin a new line."""
    return line if len(line) < columns else f"{line[: max(columns - 2, 0)]}…"
