"""Parse processor lists as the kernel prints them."""

from __future__ import annotations

import re

from loadlab.run.errors import LabError

_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def cpu_list(text: str) -> list[int]:
    """Return the processor numbers of a list: '0-2,5' -> [0, 1, 2, 5]. Raises
    ValueError otherwise."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        match = _PART.fullmatch(part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise LabError(f"not a list of processors: {text!r}")
        cpus += range(int(match[1]), int(match[2] or match[1]) + 1)
    return cpus
