"""One controller at a time for a run and its hosts: whoever loads or collects it holds its lock.

The lock is the file .lock of the run's folder, which names the process that holds it and when that
began. It holds as long as that process lives: nobody gives it back, and one that was killed leaves
none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from loadlab.core import documents

NAME = ".lock"


class HeldError(ValueError):
    """Another process holds the run's lock; the text says which, and what to do."""


def take(run_dir: Path, pid: int, place: str) -> None:
    """Give the run, whose folder may not be there yet, to the live process ``pid``, which may have
    it already.

    ``place``: what tells its hosts from others, as plan.json has it. Raises HeldError where another
    process that lives has the run, or another run on the same hosts.
    """
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    # Two that take one at once come one after another.
    with alone(run_dir.parent):
        for path in sorted(run_dir.parent.glob(f"*/{NAME}")):
            other = path.parent
            held_by = holder(other)
            if held_by in (None, pid) or other.is_symlink():
                continue
            if other == run_dir or _place(other) == place:
                raise HeldError(
                    f"run_id: '{other.name}' is under way in process {held_by} of this machine, "
                    "and two on the same hosts would spoil each other's measurements. Wait for "
                    f"that one, or end it (kill {held_by}). Nothing was changed."
                )
        run_dir.mkdir(exist_ok=True)
        documents.write(run_dir / NAME, f"{pid} {_began(pid)}\n".encode())


def holder(run_dir: Path) -> int | None:
    """The live process that has the run; None where nobody has."""
    path = run_dir / NAME
    if not path.exists():
        return None
    pid, _, began = path.read_text(encoding="ascii").strip().partition(" ")
    return int(pid) if pid.isdecimal() and _began(int(pid)) == began else None


def _place(run_dir: Path) -> str | None:
    plan = run_dir / "plan.json"
    return str(documents.load(plan).get("place", "")) if plan.exists() else None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One at a time reads what a folder has and writes what follows from it, so that what is
    written last has all: the pairs of one controller, or two controllers."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _began(pid: int) -> str | None:
    """When a process began, in ticks since boot, which no other of the same number shares; None
    where there is none, or only what its parent has not taken note of."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Behind the name, which may hold anything: the state is the third field, the start the 22nd.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
