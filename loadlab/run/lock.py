"""Lock a run and its hosts, so that only one controller at a time loads or collects it.

The lock is the file .lock in the run's folder. It names the process that holds it and the start
time of that process. The lock is valid while that process is alive: there is no explicit release,
and a killed process leaves no stale lock.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from loadlab.run import documents, run_dir
from loadlab.run.errors import LabError
from loadlab.run.run_dir import RunDir


class HeldError(LabError):
    """Another process holds the lock of the run or of its hosts; the text says which, and what to
    do."""


def take(run: Path, pid: int, place: str) -> None:
    """Take the run's lock for the live process ``pid``, which may already hold it.

    ``run`` is created where it is absent. ``place`` identifies the run's hosts, as in
    plan.json. Raises HeldError where another live process holds this run, or another run on the
    same hosts.
    """
    run.parent.mkdir(parents=True, exist_ok=True)
    # Serializes controllers that take a lock at the same time.
    with alone(run.parent):
        for other in run_dir.runs(run.parent, run_dir.LOCK):
            held_by = holder(other.path)
            if held_by in (None, pid):
                continue
            if other.path == run or _place(other) == place:
                raise HeldError(
                    f"run_id: '{other.run_id}' is under way in process {held_by} of this machine, "
                    "and two on the same hosts would spoil each other's measurements. Wait for "
                    f"that one, or end it (kill {held_by}). Nothing was changed."
                )
        run.mkdir(exist_ok=True)
        documents.write(RunDir(run).lock, f"{pid} {_began(pid)}\n".encode())


def holder(run: Path) -> int | None:
    """Return the PID of the live process that holds the run's lock; None where there is none."""
    path = RunDir(run).lock
    if not path.exists():
        return None
    pid, _, began = path.read_text(encoding="ascii").strip().partition(" ")
    return int(pid) if pid.isdecimal() and _began(int(pid)) == began else None


def _place(run: RunDir) -> str | None:
    return str(documents.load(run.plan).get("place", "")) if run.plan.exists() else None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock (flock) on a folder while the context is open.

    Whoever reads the folder and then writes a result of it does both inside, so that the last
    writer has seen every file: several host pairs of one controller, or two controllers.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _began(pid: int) -> str | None:
    """Return a process's start time in ticks since boot; None where it is absent or a zombie.

    PID and start time together identify a process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The process name may contain anything, so split after its last ")". Of all fields the state is
    # the third and the start time the 22nd.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
