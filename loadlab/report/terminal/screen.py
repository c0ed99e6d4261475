"""The terminal below a playbook's output: the status line, and headings of stages."""

import atexit
import contextlib
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from loadlab.report.terminal.progress_line import Status, UnderWay, cut
from loadlab.report.terminal.wrapping import wrapped

# Clears the line that the cursor is on.
CLEAR = "\r\x1b[K"
TICK_S = 0.5


class Display(Protocol):
    """What prints, as Ansible's Display does."""

    display: Callable[..., None]


class Screen:
    """Keeps the status line below everything that Ansible prints in this process.

    All output, including that of workers, passes through Display.display in this process. This
    class replaces that method and clears the status line before each call.
    """

    def __init__(self, display: Display, whole: Callable[[], bool]) -> None:
        """``whole``: whether lines stay as they are, such as those of Ansible and of a diff."""
        self._whole = whole
        self._under_way = UnderWay()
        self._print = display.display
        # Several threads of this process print: results of workers, callbacks, and the clock below.
        self._lock = threading.RLock()
        self._live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._drawn = ""
        self._heading = ""
        # The last messages that were printed.
        self.recent: deque[str] = deque(maxlen=100)
        self._process = os.getpid()
        self._ended = threading.Event()
        display.display = self.display
        threading.Thread(target=self._tick, daemon=True).start()
        atexit.register(self._end)

    def display(self, msg: str, *args: object, **kwargs: object) -> None:
        """Replaces Display.display; a message without a newline is a Status, from under_way()."""
        # A worker has a copy of this object; Ansible forwards its output to this process.
        if os.getpid() != self._process:
            self._print(msg, *args, **kwargs)
            return
        with self._lock:
            if not kwargs.get("newline", True):
                self._under_way.says(msgspec.json.decode(msg, type=Status))
                self._draw()
                return
            drawn = self._clear()
            # The reader may be gone; the run continues.
            with contextlib.suppress(BrokenPipeError):
                self._head()
                self._print(self._fitting(msg), *args, **kwargs)
            self.recent.append(msg)
            # Flush, so that a log shows it at once.
            self._write("")
            self._under_way.printed(time.monotonic())
            if drawn:
                self._draw()

    def _fitting(self, text: str) -> str:
        """Return a text as the terminal shows it; in a log each message stays one line."""
        if not self._live or self._whole():
            return text
        return wrapped(text, shutil.get_terminal_size().columns)

    def stage(self, heading: str) -> None:
        """Begin a stage, whose heading is printed when it has something to show."""
        with self._lock:
            self.over()
            self._heading = heading

    def _head(self) -> None:
        if self._heading:
            heading, self._heading = self._heading, ""
            self._print(heading)

    def _clear(self) -> bool:
        """Clear the status line; return whether there was one."""
        drawn, self._drawn = self._drawn, ""
        self._write(CLEAR if drawn else "")
        return bool(drawn)

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        if not self._live:
            if line := self._under_way.due(now):
                self.display(f"  {line}")
            return
        line = cut(f"  {self._under_way.words(now)}".rstrip(), shutil.get_terminal_size().columns)
        # Without a status, keep the last line: it is only a moment old.
        if line and line != self._drawn:
            if self._heading:
                self._clear()
                self._head()
            self._write(CLEAR + line)
            self._drawn = line

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text)
            sys.stdout.flush()

    def begins(self, host: str, task: str) -> None:
        """Record that a host starts a task."""
        with self._lock:
            self._under_way.begins(host, task, time.monotonic())

    def ends(self, host: str) -> None:
        """Record that a host's task ended."""
        with self._lock:
            self._under_way.ends(host)

    def over(self) -> None:
        """Record that nothing is running any more, and clear the status line."""
        with self._lock:
            self._under_way.over()
            self._clear()

    def cut_off(self) -> str:
        """Return what runs at the moment, as UnderWay.cut_off does."""
        with self._lock:
            return self._under_way.cut_off()

    def _end(self) -> None:
        self._ended.set()
        self.over()
