"""Which lab it is that measures, from its git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def of(root: Path) -> dict[str, Any]:
    """The lab itself: {revision, dirty}, both None outside of a git repository."""

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
    """Its revision, with a + where it has changes of its own; None outside of a git repository."""
    found = of(root)
    if found["revision"] is None:
        return None
    return f"{found['revision']}{'+' if found['dirty'] else ''}"
