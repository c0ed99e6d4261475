"""The controller's cache: what it built or downloaded and keeps between labs."""

from collections.abc import Mapping
from pathlib import Path


def folder(user: int, environment: Mapping[str, str], home: Path) -> Path:
    """Return the cache's folder: root's is the machine's, any other user's is below XDG_CACHE_HOME.

    ``user``: the effective user id. A relative XDG_CACHE_HOME does not count, as its specification
    says.
    """
    if user == 0:
        return Path("/var/cache/loadlab")
    own = Path(environment.get("XDG_CACHE_HOME", ""))
    return (own if own.is_absolute() else home / ".cache") / "loadlab"
