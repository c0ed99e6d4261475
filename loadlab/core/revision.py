"""Read the lab's own revision from its git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def of(root: Path) -> dict[str, Any]:
    """Return {revision, dirty} of the lab: a commit hash and whether the working tree has changes.

    Both are None outside a git repository.
    """

    def git(*words: str) -> str | None:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    changes = git("status", "--porcelain")
    return {
        "revision": git("rev-parse", "HEAD"),
        "dirty": None if changes is None else bool(changes),
    }


def revision(root: Path) -> str | None:
    """Return the commit hash, with a "+" where the working tree has changes.

    None outside a git repository.
    """
    found = of(root)
    if found["revision"] is None:
        return None
    return f"{found['revision']}{'+' if found['dirty'] else ''}"
