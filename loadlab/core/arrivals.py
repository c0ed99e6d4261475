"""Move files fetched from a host to their places in the run's folder.

Files of each host arrive in a folder of their own, so two concurrent transfers never share one.
rsync gives a file its final name only when the file is whole. A name that starts with a dot is an
interrupted transfer; the host still has that file.
"""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

# The controller's error file is kept; it already contains the client's message.
ERROR = "error.txt"


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
            if not same and name != ERROR:
                taken.append(below.as_posix())
            path.unlink()
        Path(folder).rmdir()
    if arrived.exists():
        arrived.rmdir()
    return sorted(moved), sorted(taken)


def _free(place: Path) -> bool:
    """Create the parent folder of ``place``; return whether ``place`` can be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return not os.path.lexists(place)
