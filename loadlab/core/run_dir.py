"""Names in a run's folder."""

from __future__ import annotations

import re

# Between the name of a pair's calibration and that of one of its further clients.
FURTHER = "+"

# A client's name that names a folder.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
