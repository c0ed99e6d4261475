"""Run the locked uv on the controller."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from loadlab.core.formatting import one_line

# Characters of a message.
_MOST = 800


def failure(arguments: Sequence[str | Path], timeout_s: float, cwd: Path | None = None) -> str:
    """Run uv in the folder ``cwd``; return why it failed, "" where it did not.

    The message is without the passwords of addresses. Raises TimeoutExpired after ``timeout_s``.
    """
    said = subprocess.run(
        [Path(sys.executable).with_name("uv"), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if not said.returncode:
        return ""
    why = re.sub(r"//[^/@\s]*@", "//", one_line(said.stderr, _MOST))
    return why or f"uv ended with status {said.returncode}"
