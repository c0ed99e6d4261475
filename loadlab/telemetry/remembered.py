"""Read a recording once, although each of several clients is judged by the same server's."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def remembered(read: Callable[[Path], T]) -> Callable[[Path], T]:
    """Return a reader of a file that remembers two files: the server's, and the client's before.

    A file that changed is read again. Nobody may change what is returned.
    """

    @lru_cache(maxsize=2)
    def read_as_it_is(path: Path, _changed_ns: int, _size: int) -> T:
        return read(path)

    @wraps(read)
    def read_once(path: Path) -> T:
        found = path.stat()
        return read_as_it_is(path, found.st_mtime_ns, found.st_size)

    return read_once
