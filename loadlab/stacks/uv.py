"""Run the locked uv on the controller."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from loadlab.run.errors import PlanError
from loadlab.run.formatting import lasting, one_line

# Characters of a message.
_MOST = 800


def failure(
    arguments: Sequence[str | Path],
    seconds: float,
    purpose: str,
    remedy: str,
    cwd: Path | None = None,
) -> str:
    """Run uv in the folder ``cwd`` for at most so many seconds; return why it failed, "" where it
    did not.

    ``purpose``: what it does, "<option>: the download of ...". ``remedy``: what the user can do
    about a command that lasts longer, in a sentence. The message is without the passwords of
    addresses. Raises PlanError where it lasts too long.
    """
    try:
        said = subprocess.run(
            [Path(sys.executable).with_name("uv"), *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PlanError(
            f"{purpose} took longer than {lasting(seconds)}, the limit. {remedy}"
        ) from None
    if not said.returncode:
        return ""
    reason = re.sub(r"//[^/@\s]*@", "//", one_line(said.stderr, _MOST))
    return reason or f"uv ended with status {said.returncode}"
