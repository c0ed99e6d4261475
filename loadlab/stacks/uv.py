"""Run the locked uv on the controller."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from loadlab.run.errors import PlanError
from loadlab.run.formatting import lasting, one_line

# Characters of a message.
_MOST = 800


class Limit(Struct, frozen=True, kw_only=True):
    """How long a command may last."""

    seconds: float
    purpose: str  #: What it does, "<option>: the download of ...".
    remedy: str  #: What the user can do about a command that lasts longer, in a sentence.


def failure(arguments: Sequence[str | Path], limit: Limit, cwd: Path | None = None) -> str:
    """Run uv in the folder ``cwd``; return why it failed, "" where it did not.

    The message is without the passwords of addresses. Raises PlanError where it lasts too long.
    """
    try:
        said = subprocess.run(
            [Path(sys.executable).with_name("uv"), *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=limit.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PlanError(
            f"{limit.purpose} took longer than {lasting(limit.seconds)}, the limit. {limit.remedy}"
        ) from None
    if not said.returncode:
        return ""
    reason = re.sub(r"//[^/@\s]*@", "//", one_line(said.stderr, _MOST))
    return reason or f"uv ended with status {said.returncode}"
