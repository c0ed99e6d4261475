"""Read and write the JSON documents of a run.

Files are written whole or not at all. Errors name the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from loadlab.core.errors import ResultError

# The key `schema` of each document of a run; files/schema/lab-1.schema.json defines them.
SCHEMA = "lab/1"


def write(path: Path, data: bytes) -> None:
    """Write data to path: a temporary name in the same directory, fsync, then rename.

    The file mode becomes 0644. Raises OSError; the temporary file is then removed.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def dump(document: Any) -> bytes:
    """Return a document as JSON bytes with sorted keys and a final newline.

    Raises ValueError for NaN and infinity.
    """
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return text.encode() + b"\n"


def text(path: Path) -> str:
    """Return a file's text. Raises ResultError naming the file if it is absent or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ResultError(f"{path.name} is not there") from error
    except UnicodeDecodeError as error:
        raise ResultError(f"{path.name} is no UTF-8 text: {error}") from error


def load(path: Path) -> dict[str, Any]:
    """Return a file's JSON object. Raises ResultError naming the file if it holds none."""
    content = text(path)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ResultError(f"{path.name} is truncated or no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ResultError(f"{path.name} is no JSON object: {content[:80]!r}")
    return document


def digest(data: bytes) -> str:
    """Return the SHA-256 of data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
