import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadlab.bundle import archive as bundle
from loadlab.bundle import unpack as unpacking
from loadlab.bundle.archive import BundleError

FIXTURES = Path(__file__).parents[2] / "fixtures"
REP = "cells/aiohttp-oha-400rps/rep-1"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run of one repetition, with a name that is longer than a plain tar header holds."""
    run = tmp_path / "a-run"
    shutil.copytree(FIXTURES / "rep-oha", run / REP)
    shutil.copytree(FIXTURES / "rep-wrk", run / "cells" / ("a" * 120) / "rep-1")
    (run / "plan.json").write_text("{}\n")
    return run


@pytest.fixture
def archive(run_dir: Path, tmp_path: Path) -> Path:
    bundle.pack(run_dir, tmp_path / "a-run.tar.gz")
    return tmp_path / "a-run.tar.gz"


def content(run_dir: Path) -> dict[str, bytes]:
    paths = (path for path in run_dir.rglob("*") if path.is_file())
    return {path.relative_to(run_dir).as_posix(): path.read_bytes() for path in paths}


def unpack(archive: Path, tmp_path: Path) -> Path:
    into = tmp_path / "unpacked" / "into"
    shutil.rmtree(into.parent, ignore_errors=True)
    into.mkdir(parents=True)
    return unpacking.unpack(archive, into).run_dir


def test_what_was_packed_is_unpacked(run_dir: Path, archive: Path, tmp_path: Path) -> None:
    assert content(unpack(archive, tmp_path)) == content(run_dir)


def test_pack_returns_files_bytes_and_checksum(run_dir: Path, tmp_path: Path) -> None:
    archive = tmp_path / "b.tar.gz"
    packed = bundle.pack(run_dir, archive)
    data = archive.read_bytes()
    assert packed == {
        "files": len(content(run_dir)),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "signer": None,
    }


def test_the_same_files_give_the_same_bytes(run_dir: Path, archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "a-run"
    shutil.copytree(run_dir, copy, copy_function=shutil.copyfile)
    for path in copy.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (1, 1))
    (copy / ".being-written").write_text("half")
    bundle.pack(copy, tmp_path / "b.tar.gz")
    assert (tmp_path / "b.tar.gz").read_bytes() == archive.read_bytes()


def test_ordinary_tools_read_it(run_dir: Path, archive: Path, tmp_path: Path) -> None:
    into = tmp_path / "by-tar"
    into.mkdir()
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", into], check=True)
    sums = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(sums, check=True, cwd=into / "a-run")
    listing = ["tar", "--list", "--verbose", "--file", str(archive)]
    members = subprocess.run(listing, check=True, capture_output=True, text=True)
    assert all(line.startswith("-rw-r--r-- 0/0 ") for line in members.stdout.splitlines())


def test_a_link_in_a_run_is_not_packed(run_dir: Path, tmp_path: Path) -> None:
    (run_dir / "cells" / "key").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match=r"^cells/key is no plain file$"):
        bundle.pack(run_dir, tmp_path / "b.tar.gz")
    assert list(tmp_path.iterdir()) == [run_dir]


def test_what_could_not_be_unpacked_is_not_packed(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, words in (
        ("FILES_MAX", r"has \d+ files, limit 3"),
        ("FILE_BYTES_MAX", r"has \S+ of [\d,]+ bytes or more, limit 3"),
        ("BYTES_MAX", r"has [\d,]+ bytes, limit 3"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(bundle, limit, 3)
            with pytest.raises(BundleError, match=words):
                bundle.pack(run_dir, tmp_path / "b.tar.gz")


Change = Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]


def rebuilt(archive: Path, change: Change, head: bytes | None = None) -> None:
    """Write the archive anew with members changed; its list of sums stays as it was."""
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    change(members)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members:
            member.size = len(data) if member.type == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(data))
    compress(archive, stream.getvalue())


def compress(archive: Path, stream: bytes) -> None:
    with archive.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(stream)


def added(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **more: Any) -> Change:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    for key, value in more.items():
        setattr(member, key, value)
    return lambda members: members.append((member, b"x" if kind == tarfile.REGTYPE else b""))


def altered(name: str, **changed: Any) -> Change:
    def change(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        (header,) = (member for member, _ in members if member.name == name)
        for key, value in changed.items():
            setattr(header, key, value)

    return change


SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (added("a-run/../../evil"), "'a-run/../../evil', which is none that the lab gives"),
        (added("../evil"), "'../evil', which is none that the lab gives"),
        (added("/etc/evil"), "'/etc/evil', which is none that the lab gives"),
        (added("a-run//evil"), "'a-run//evil', which is none"),
        (added("a-run/./evil"), "'a-run/./evil', which is none"),
        (added("a-run/e\x1b[2Jvil"), r"'a-run/e\x1b[2Jvil', which is none"),
        (added("a-run/a\\b"), "which is none that the lab gives"),
        (added("b-run/evil"), "'b-run/evil', which is not in the folder of one run"),
        (added("a-run"), "'a-run', which is not in the folder of one run"),
        (added("a-run/evil", tarfile.SYMTYPE, "/etc/passwd"), "'a-run/evil', which is no plain"),
        (added("a-run/evil", tarfile.LNKTYPE, "a-run/plan.json"), "'a-run/evil', which is no"),
        (added("a-run/evil", tarfile.CHRTYPE), "'a-run/evil', which is no plain file"),
        (added("a-run/evil", tarfile.FIFOTYPE), "'a-run/evil', which is no plain file"),
        (added("a-run/evil", tarfile.DIRTYPE), "'a-run/evil', which is no plain file"),
        (added("a-run/plan.json"), "has 'a-run/plan.json' twice"),
        (added("a-run/plan.json/evil"), "cannot be unpacked, at 'a-run/plan.json/evil'"),
        (added(f"a-run/{'e' * 300}"), "cannot be unpacked, at 'a-run/eeee"),
        (added("a-run/evil"), "evil is there and not listed"),
        (lambda members: members.pop(), "is listed and not there"),
        (lambda members: members.clear(), "has no SHA256SUMS"),
        (lambda members: members.pop(0) and None, "has no SHA256SUMS"),
        (added("a-run/.evil"), "is not what packing its files gives"),
        (lambda members: members.reverse(), "is not what packing its files gives"),
        (altered("a-run/plan.json", mode=0o755), "is not what packing its files gives"),
        (altered("a-run/plan.json", mtime=1), "is not what packing its files gives"),
        (altered("a-run/plan.json", uname="root"), "is not what packing its files gives"),
        (altered("a-run/plan.json", pax_headers={"comment": "x" * 2_000_000}), "has a header of"),
        (
            altered("a-run/plan.json", pax_headers={**SPARSE, "GNU.sparse.realsize": "9" * 11}),
            "is no tar archive, or damaged, after",
        ),
        (
            altered(
                "a-run/plan.json",
                pax_headers={"GNU.sparse.map": "0,1,99999999998,1", "GNU.sparse.size": "9" * 11},
            ),
            "'a-run/plan.json', which is no plain file",
        ),
    ],
)
def test_what_the_lab_does_not_pack_is_refused_by_name(
    archive: Path, tmp_path: Path, change: Change, words: str
) -> None:
    rebuilt(archive, change)
    before = {path for path in tmp_path.rglob("*") if "unpacked" not in path.parts}
    with pytest.raises(BundleError) as refusal:
        unpack(archive, tmp_path)
    assert words in str(refusal.value)
    assert {path for path in tmp_path.rglob("*") if "unpacked" not in path.parts} == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "ends in the middle"),
        (lambda data: data[: len(data) // 2], "ends in the middle"),
        (lambda data: data + b"\0", "goes on after its end"),
        (lambda data: data + data, "goes on after its end"),
        (lambda data: b"PK" + data, "does not begin as a bundle does"),
        (lambda data: b"", "does not begin as a bundle does"),
        (lambda data: data[:10] + gzip.compress(b"no tar", mtime=0)[10:], "is no tar archive"),
    ],
)
def test_what_is_no_whole_archive_is_refused(
    archive: Path, tmp_path: Path, change: Callable[[bytes], bytes], words: str
) -> None:
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(BundleError, match=words):
        unpack(archive, tmp_path)


def test_a_bomb_is_refused_before_it_fills_the_disk(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archive.read_bytes()
    for limit, value, words in (
        ("FILES_MAX", 3, "has more than 3 files"),
        ("FILE_BYTES_MAX", 9000, "of [0-9,]+ bytes or more, limit 9,000"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(bundle, limit, value)
            with pytest.raises(BundleError, match=words):
                unpack(archive, tmp_path)
    monkeypatch.setattr(bundle, "BYTES_MAX", 1_000_000)
    monkeypatch.setattr(bundle, "FILES_MAX", 0)
    compress(archive, bytes(50_000_000))
    assert archive.stat().st_size < len(whole)
    with pytest.raises(BundleError, match="unpacks to more than 1,000,000 bytes"):
        unpack(archive, tmp_path)


def test_a_bomb_within_is_refused(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_dir / REP / "telemetry-server.prom.gz").write_bytes(gzip.compress(bytes(3_000_000)))
    bundle.pack(run_dir, tmp_path / "b.tar.gz")
    unpack(tmp_path / "b.tar.gz", tmp_path)
    monkeypatch.setattr(bundle, "FILE_BYTES_MAX", 2_000_000)
    with pytest.raises(BundleError, match=r"in .*telemetry-server\.prom\.gz what unpacks"):
        unpack(tmp_path / "b.tar.gz", tmp_path)


def test_a_compressed_file_that_was_cut_off_is_evidence(run_dir: Path, tmp_path: Path) -> None:
    cut = run_dir / REP / "telemetry-server.prom.gz"
    cut.write_bytes(cut.read_bytes()[:-100])
    bundle.pack(run_dir, tmp_path / "b.tar.gz")
    assert content(unpack(tmp_path / "b.tar.gz", tmp_path))[f"{REP}/{cut.name}"] == cut.read_bytes()


many = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@many
@given(where=st.integers(0, 10**9), mask=st.integers(1, 255))
def test_an_archive_of_which_any_byte_was_changed_is_refused(
    archive: Path, tmp_path: Path, where: int, mask: int
) -> None:
    data = bytearray(archive.read_bytes())
    # The few bits that fill up the last byte before the checksum mean nothing.
    data[(where % (len(data) - 9)) if where % 2 else -1 - where % 8] ^= mask
    changed = tmp_path / "changed.tar.gz"
    changed.write_bytes(data)
    with pytest.raises(BundleError):
        unpack(changed, tmp_path)


@many
@given(pick=st.integers(0, 10**9), where=st.integers(0, 10**9), mask=st.integers(1, 255))
def test_a_file_of_which_any_byte_was_changed_is_named(
    run_dir: Path, archive: Path, tmp_path: Path, pick: int, where: int, mask: int
) -> None:
    name = sorted(name for name, data in content(run_dir).items() if data)[pick % 15]

    def change(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        for index, (member, data) in enumerate(members):
            if member.name == f"a-run/{name}":
                bad = bytearray(data)
                bad[where % len(bad)] ^= mask
                members[index] = (member, bytes(bad))

    changed = tmp_path / "changed.tar.gz"
    shutil.copy(archive, changed)
    rebuilt(changed, change)
    with pytest.raises(BundleError, match="is not as its SHA256SUMS says: ") as refusal:
        unpack(changed, tmp_path)
    assert f"{name} was changed" in str(refusal.value)
