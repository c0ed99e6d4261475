"""What was fetched from a host: from the folder that it arrived in to its place in the run.

Each host's files arrive in a folder of its own: two that are fetched at once share none. A file
has its name there as soon as it is whole; a name with a dot in front is rsync's, of one that was
cut off, which the host still has.
"""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

# The controller's word stands; the client's own is in it.
ERROR = "error.txt"


def move(arrived: Path, run_dir: Path) -> tuple[list[str], list[str]]:
    """Move the files of the run's folder in ``arrived`` to their places below ``run_dir``, and
    remove what is left of ``arrived``, which need not be there.

    What is at a place already is somebody's measurement and stays; what came for it goes. Returns
    the names that were moved, and those whose place something else had.
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
    """Whether nothing is there, and its folder is one."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return not os.path.lexists(place)
