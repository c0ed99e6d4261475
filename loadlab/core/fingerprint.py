"""Compute a fingerprint of everything that decides what a stage puts on a host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def fingerprint(values: Any, root: str, paths: Sequence[str]) -> str:
    """Return the SHA-256 (hexadecimal) of the values as JSON and of every file below root/<path>.

    Raises ValueError where a path does not exist. Files in __pycache__ are skipped.
    """
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode())
    for path in paths:
        top = Path(root) / path
        if not top.exists():
            raise ValueError(f"{path} is not there, so nothing can be told of what it holds")
        for file in [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file()):
            if "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
