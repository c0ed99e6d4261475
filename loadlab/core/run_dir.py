"""Names of files in a run's folder."""

from __future__ import annotations

import re

# Joins the name of a host pair's calibration and the name of one of its further clients.
FURTHER = "+"

# A client's name, where it names a folder.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
