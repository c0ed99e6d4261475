"""Read the lab's own version, and its revision from its git repository."""

import subprocess
import tomllib
from pathlib import Path

from loadlab.model import LabRevision


def of(root: Path) -> LabRevision:
    """Return the version of the lab in ``root``, its commit hash and whether it has changes.

    The last two are None outside a git repository and without git, the version without a
    pyproject.toml.
    """

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            # A lab from an archive needs no git.
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    changes = git("status", "--porcelain")
    return LabRevision(
        version=_version(root / "pyproject.toml"),
        revision=git("rev-parse", "HEAD"),
        dirty=None if changes is None else bool(changes),
    )


def _version(project: Path) -> str | None:
    if not project.exists():
        return None
    return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def revision(root: Path) -> str | None:
    """Return the commit hash, with a "+" where the working tree has changes.

    None outside a git repository.
    """
    lab_revision = of(root)
    return (
        None
        if lab_revision.revision is None
        else f"{lab_revision.revision}{'+' if lab_revision.dirty else ''}"
    )
