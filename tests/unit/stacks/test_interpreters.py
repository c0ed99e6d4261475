"""The Python that an application runs on, where it is not the server's own."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from loadlab.run.errors import PlanError
from loadlab.stacks import interpreters, uv

# uv writes the folder's path into it.
HEADER = b"# system configuration generated and used by the sysconfig module\n"
DATA = "_sysconfigdata_t_linux_x86_64-linux-gnu.py"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an archive that uv takes for a free-threaded Python 3.14.2 of this machine."""
    archive = tmp_path / "python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (
            ("bin/python3", b"#!/bin/sh\n"),
            ("bin/python3.14t", b"#!/bin/sh\n"),
            (f"lib/python3.14t/{DATA}", HEADER + b"build_time_vars = {}\n"),
        ):
            entry = tarfile.TarInfo(f"python/{name}")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text))
    build = {
        "name": "cpython",
        "arch": {"family": "x86_64", "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": 3,
        "minor": 14,
        "patch": 2,
        "prerelease": "",
        "url": archive.as_uri(),
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "variant": "freethreaded",
        "build": "20261110",
    }
    known = tmp_path / "builds.json"
    known.write_text(json.dumps({"cpython-3.14.2+freethreaded-linux-x86_64-gnu": build}))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(known))
    return archive


def test_python_is_downloaded_once_and_named_after_its_exact_version(
    mirror: Path, tmp_path: Path
) -> None:
    folder, changed = interpreters.obtain(tmp_path, "3.14t", "x86_64")
    assert changed
    assert folder.parent == tmp_path / interpreters.FOLDER
    assert folder.name == "cpython-3.14.2+freethreaded-linux-x86_64-gnu"
    assert (folder / "bin/python3").exists()
    mirror.unlink()
    assert interpreters.obtain(tmp_path, "3.14t", "x86_64") == (folder, False)
    assert interpreters.obtain(tmp_path, "3.14.2t", "x86_64") == (folder, False)


def test_changed_build_is_refused(mirror: Path, tmp_path: Path) -> None:
    mirror.write_bytes(mirror.read_bytes() + b"\0")
    with pytest.raises(PlanError, match="Hash mismatch"):
        interpreters.obtain(tmp_path, "3.14t", "x86_64")


def test_refusal_names_the_address_that_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", f"file://{tmp_path}/nowhere")
    with pytest.raises(PlanError) as refusal:
        interpreters.obtain(tmp_path, "3.14t", "x86_64")
    said = str(refusal.value)
    assert said.startswith("python: 3.14t cannot be had on this machine: ")
    assert f"{tmp_path}/nowhere/" in said
    assert "freethreaded" in said
    assert "Set UV_PYTHON_INSTALL_MIRROR to" in said


def test_python_that_uv_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"No download found for request: cpython-3\.99"):
        interpreters.obtain(tmp_path, "3.99", "x86_64")


@pytest.mark.parametrize("name", ["3.14", "3.14.2", "3.14t", "3.9", "pypy3"])
def test_python_has_a_version_or_is_debians_pypy(name: str) -> None:
    interpreters.refuse(name, None)


@pytest.mark.parametrize(
    "name", ["", "3", "2.7", "3.14T", "python3.14", "pypy", "3.14.2.1", "../3.1"]
)
def test_what_names_no_python_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="is no Python"):
        interpreters.refuse(name, None)


def test_driver_without_a_wheel_for_pypy_is_refused() -> None:
    interpreters.refuse("pypy3", "psycopg")
    interpreters.refuse("3.14t", "asyncpg")
    for driver in ("psycopg2", "asyncpg"):
        with pytest.raises(PlanError, match=f"the driver {driver} has no wheel for pypy3. Give"):
            interpreters.refuse("pypy3", driver)


PURPOSE, REMEDY = "python: the download of 3.14", "Leave python out."


def test_command_that_lasts_too_long_names_its_purpose_limit_and_remedy() -> None:
    with pytest.raises(PlanError) as refused:
        uv.failure(["--version"], 1e-9, PURPOSE, REMEDY)
    assert str(refused.value) == f"{PURPOSE} took longer than 0 s, the limit. {REMEDY}"


def test_command_that_fails_is_told_in_uvs_words() -> None:
    assert uv.failure(["--version"], 60, PURPOSE, REMEDY) == ""
    assert "nosuch" in uv.failure(["nosuch"], 60, PURPOSE, REMEDY)
