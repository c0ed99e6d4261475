"""The Python that an application runs on, where it is not the server's own.

A version is a build that uv downloads on the controller. The locked uv has the address and the
SHA-256 of each build.
"""

import re
from pathlib import Path

from loadlab.run.errors import PlanError
from loadlab.stacks import uv

# Debian's package of this name, whose command has the same name.
PACKAGE = "pypy3"
# Drivers in C, of which the index has no wheel for PyPy.
_NOT_THERE = frozenset({"psycopg2", "asyncpg"})
FOLDER = ".cache/pythons"
# Seconds of a download of about 30 MB.
_TIMEOUT_S = 900
_VERSION = re.compile(r"(3\.[0-9]{1,2}(?:\.[0-9]{1,2})?)(t?)")


def refuse(name: str, driver: str | None) -> None:
    """Raise PlanError where ``name`` names no Python, or the database driver does not run on it."""
    if name != PACKAGE and not _VERSION.fullmatch(name):
        raise PlanError(
            f"python: '{name}' is no Python. Give a version such as 3.14 or 3.14.2, 3.14t for a "
            f"free-threaded one, or {PACKAGE}; or leave it out for the server's own."
        )
    if name == PACKAGE and driver in _NOT_THERE:
        raise PlanError(
            f"python: the driver {driver} has no wheel for {PACKAGE}. Give -e driver=psycopg, "
            "which applications of WSGI have."
        )


def obtain(root: Path, name: str, machine: str) -> tuple[Path, bool]:
    """Return the folder of a Python on the controller, and whether it was downloaded.

    ``name``: a version as in ``refuse``; ``machine``: of the server, as uname -m prints it. Raises
    PlanError where uv knows no such build, or cannot download it.
    """
    version = _VERSION.fullmatch(name)
    assert version is not None
    kind = "+freethreaded" if version[2] else ""
    build = f"cpython-{version[1]}{kind}-linux-{machine}-gnu"
    place = root / FOLDER
    before = (place / build).exists()
    where = ("--managed-python", "--no-bin", "--install-dir", place)
    remedy = (
        "Set UV_PYTHON_INSTALL_MIRROR to the address of a copy of these builds, or leave python "
        "out for the server's own."
    )
    words: list[str | Path] = ["python", "install", "--no-progress", *where, build]
    reason = uv.failure(words, _TIMEOUT_S, f"python: the download of {name}", remedy)
    if reason:
        raise PlanError(f"python: {name} cannot be had on this machine: {reason}. {remedy}")
    # uv links a version without its last number to the build.
    return (place / build).resolve(), not before
