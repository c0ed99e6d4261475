"""Make the lock file of an application from outside the tree, with uv, on the controller."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.stacks import requirements, uv

# Seconds; a resolution that backtracks for longer has no answer.
_TIMEOUT_S = 300
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def lock(root: Path, folder: Path, file: str) -> bool:
    """Make the lock file of an application where it is not there; return whether it was made.

    Raises PlanError where the index has no such packages, or no wheels of them.
    """
    path = root / requirements.lock(root, folder, file)
    if path.exists():
        return False
    packages = requirements.wanted(folder, file)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "wanted.in").write_text("\n".join([*packages, ""]), encoding="utf-8")
        reason = uv.failure(
            [
                *("pip", "compile", "--quiet"),
                *("--universal", "--python-version", requirements.PYTHON, "--no-header"),
                *("--generate-hashes", "--only-binary", ":all:"),
                *("wanted.in", "--output-file", "lock.txt"),
            ],
            uv.Limit(
                seconds=_TIMEOUT_S,
                purpose=f"app: locking the packages of {folder / file}",
                remedy="Give it narrower versions, such as those that pip freeze names where the "
                "application runs.",
            ),
            Path(place),
        )
        if reason:
            raise PlanError(
                f"app: the packages of {folder / file} cannot be locked: {reason} Give versions "
                f"that the index has as wheels for Python {requirements.PYTHON} and newer."
            )
        text = (Path(place) / "lock.txt").read_text(encoding="utf-8")
    bare = [pinned[1] for pinned in _PINNED.finditer(text) if "--hash=" not in pinned[0]]
    if bare:
        raise PlanError(f"app: {', '.join(bare)} of {folder / file} came without hashes.")
    path.parent.mkdir(parents=True, exist_ok=True)
    documents.write(path, f"{text}{requirements.own_pin(folder, file)}\n".encode())
    return True
