"""Lookup lab.bench.package_sources; loadlab/hosts/package_sources.py does the work."""

import functools
import os
import shutil
import ssl
import subprocess
import urllib.request
from pathlib import Path

import msgspec
from ansible.plugins.lookup import LookupBase

from loadlab.hosts import package_sources
from loadlab.run.errors import LabError
from loadlab.run.formatting import one_line

DOCUMENTATION = """
name: package_sources
short_description: Find where the controller gets packages, by the settings of its tools
description:
  - Reads the files of apt and cargo, asks pip, npm and Go, and asks the registries of pip and cargo
    which servers have their files. Takes about a second.
  - Returns C(sources), C(environment) and C(missing), see loadlab/hosts/package_sources.py.
  - With the term C(crates), returns why cargo cannot fetch crates here, else an empty string.
author: the lab's developers
"""

# Seconds for one answer of a tool, and of a package index.
TOOL_S = 30
INDEX_S = 10
LOCK = Path(package_sources.__file__).parents[2] / "metronome" / "Cargo.lock"


def ask(command: list[str]) -> str:
    """Return what a command prints, "" where the program is absent. Raises LabError where it
    fails."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(command)}` failed: {one_line(done.stderr)}")
    return done.stdout


def read(url: str, certificates: str) -> tuple[str, str]:
    """Return the address and the text of a page. Raises OSError where it does not come."""
    context = ssl.create_default_context(cafile=certificates or None)
    with urllib.request.urlopen(url, timeout=INDEX_S, context=context) as answer:
        return answer.url, answer.read().decode()


@functools.cache
def sources() -> package_sources.Found:
    """Return what this machine fetches from; one task may ask several times."""
    return package_sources.find(ask, read, os.environ, Path("/etc/apt"), Path.home(), LOCK)


@functools.cache
def crates() -> str:
    """Return why this machine's cargo cannot fetch crates, or ""."""
    return package_sources.crates_refusal(read, os.environ, Path.home(), LOCK)


class LookupModule(LookupBase):  # type: ignore[misc]
    def run(self, terms: list[object], variables: object = None, **kwargs: object) -> list[object]:
        return [crates()] if terms == ["crates"] else [msgspec.to_builtins(sources())]
