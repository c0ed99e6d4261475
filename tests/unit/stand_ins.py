"""Programs and files that stand in for those of a host, and what a script prints with them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def put(folder: Path, programs: Mapping[str, str]) -> Path:
    """Write shell programs by name into a folder, which is made; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)
    return folder


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write texts into files below a folder, path -> text, with the folders between; return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def before(folder: Path) -> str:
    """Return a PATH with the folder before the usual ones."""
    return f"{folder}:{os.environ['PATH']}"


def printed(script: str, folder: Path | None = None, **variables: str) -> str:
    """Return what a shell script prints, whatever its status. ``folder``: of its stand-ins."""
    path = os.environ["PATH"] if folder is None else before(folder)
    return subprocess.run(
        ["sh", "-c", script],
        env={"PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
