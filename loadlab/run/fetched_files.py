"""Fetch files from a host, and move them to their places in the run's folder.

Files of each host arrive in a folder of their own, so two concurrent transfers never share one.
rsync gives a file its final name only when the file is whole. A name that starts with a dot is an
interrupted transfer; the host still has that file.
"""

import filecmp
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from loadlab.run.run_dir import (
    CORES,
    DATABASE,
    DATABASE_LOG,
    ERROR,
    LOCK_PROFILE,
    PROCESSES,
    PROFILE,
    PROFILE_LOG,
    QUEUES,
    REVERSE_PROXY_LOG,
    TO_REPETITIONS,
    TRACE,
    TRACE_COUNTERS,
    TRACE_LOG,
    RunDir,
)

# The controller's error file is kept; it already contains the client's message.
_KEPT = ERROR
# Recordings of a server.
_RECORDED = (
    *(PROCESSES, CORES, QUEUES, REVERSE_PROXY_LOG, DATABASE, DATABASE_LOG),
    *(PROFILE, PROFILE_LOG, LOCK_PROFILE, TRACE, TRACE_COUNTERS, TRACE_LOG),
)
# Glob of names with characters outside visible ASCII (! to ~). The lab creates none, and a terminal
# could interpret them.
_ODD = "*[!!-~]*"


def move(arrived: Path, run_dir: Path) -> tuple[list[str], list[str]]:
    """Move the files in ``arrived``/<run_id> to their places below ``run_dir``.

    A file that is already in place is an earlier measurement: it stays, and the new arrival is
    deleted. ``arrived`` itself is removed; it may be absent.

    Returns (paths moved, paths refused because a different file has their place). Both lists are
    sorted and relative to ``run_dir``.
    """
    moved, taken = [], []
    top = arrived / run_dir.name
    for folder, _, names in os.walk(top, topdown=False):
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith("."):
                path.unlink()
                continue
            below = path.relative_to(top)
            place = run_dir / below
            if _free(place):
                path.rename(place)
                moved.append(below.as_posix())
                continue
            same = place.is_file() and filecmp.cmp(path, place, shallow=False)
            if not same and name != _KEPT:
                taken.append(below.as_posix())
            path.unlink()
        Path(folder).rmdir()
    if arrived.exists():
        arrived.rmdir()
    return sorted(moved), sorted(taken)


def rsync(
    run_dir: Path, server: bool, ssh_options: Sequence[str], address: str, arrived: Path
) -> list[str]:
    """Return the command that fetches a run from a host, a ``server`` or a client, to ``arrived``.

    It goes through the connection that ``ssh_options`` keep open, if that is there. Its own has no
    forwards, which that one has bound, and is not kept, as later tasks would miss them.
    """
    ssh = ["ssh", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", *ssh_options]
    # An IPv6 address has colons.
    place = f"[{address}]" if ":" in address else address
    source = f"{place}:{RunDir(run_dir).on_hosts}"
    return [
        "rsync",
        *rsync_options(run_dir, server),
        f"--rsh={shlex.join(ssh)}",
        source,
        f"{arrived}/",
    ]


def rsync_options(run_dir: Path, server: bool) -> list[str]:
    """Return rsync's options for fetching a run from a host, a ``server`` or a client.

    Fetched files are removed from the host, since a long run is large. A server that recorded
    nothing has no folder. A link could point anywhere on the controller, so only regular files and
    folders are copied. Times of folders are irrelevant, because the controller also writes there;
    folders of files that were fetched earlier are empty on the host.

    Of a server only its recordings are accepted, as its clients' measurements are in the same
    folder on the controller. A recording grows by a few kB/s; one of more than 2 GiB stays on the
    server.
    """
    options = [
        "--recursive",
        "--times",
        "--remove-source-files",
        "--ignore-missing-args",
        "--omit-dir-times",
        "--prune-empty-dirs",
        f"--exclude={_ODD}",
        "--exclude=.*",
    ]
    if not server:
        return options
    files = [f"{TO_REPETITIONS[-1]}{name}" for name in _RECORDED]
    included = [f"--include=/{run_dir.name}{path}" for path in (*TO_REPETITIONS, *files)]
    return [*options, "--max-size=2g", *included, "--exclude=*"]


def _free(place: Path) -> bool:
    """Create the parent folder of ``place``; return whether ``place`` can be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return not os.path.lexists(place)
