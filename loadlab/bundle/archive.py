"""Pack a run into one archive; unpack.py reads it.

The same files give the same bytes: names are sorted, and there is no owner and a single date. The
archive has a SHA256SUMS, which `sha256sum --check` also reads, and a SHA256SUMS.sig if it was
signed.
"""

import hashlib
import io
import tarfile
from collections.abc import Callable
from gzip import GzipFile
from pathlib import Path
from typing import IO, Protocol, TypedDict

from loadlab.bundle.signature import Signed
from loadlab.plan import plan_document as plans
from loadlab.run import lock
from loadlab.run.catalog import runs
from loadlab.run.errors import LabError
from loadlab.run.formatting import plural
from loadlab.run.run_dir import LATEST, MANIFEST, PLAN, REPORT, RUN_ID, SUMMARY, RunDir

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
# Files without which a run cannot be verified elsewhere.
NEEDED = (PLAN, MANIFEST, SUMMARY, REPORT)
# Limits for packing and unpacking: number of files; bytes of one file (of a .gz also unpacked);
# bytes in total.
FILES_MAX = 100_000
FILE_BYTES_MAX = 1 << 30
BYTES_MAX = 8 << 30

_DATE = 315_532_800  # 1980-01-01: tar warns of earlier dates


class BundleError(LabError):
    """A run cannot be packed, or an archive is refused; the text says why."""


class Packed(TypedDict):
    """A bundle: the number of files in it, its bytes, its SHA-256, and the fingerprint of the key
    that signed it or None."""

    files: int
    bytes: int
    sha256: str
    signer: str | None


class _Out(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def tell(self) -> int: ...


class Digest:
    """A write-only stream that keeps the SHA-256 and the size of what is written."""

    def __init__(self) -> None:
        self.sha256, self._size = hashlib.sha256(), 0

    def write(self, data: bytes, /) -> None:
        self.sha256.update(data)
        self._size += len(data)

    def tell(self) -> int:
        return self._size


def refuse(results: Path, run_id: str) -> None:
    """Raise BundleError where the run is incomplete or under way; ``run_id`` may be "latest"."""
    run_dir = (results / run_id).resolve()
    absent = [name for name in NEEDED if not (run_dir / name).exists()]
    named = run_id == LATEST or RUN_ID.fullmatch(run_id)
    if absent or not named:
        fault = f"has no {', '.join(absent)}" if named else "cannot name a folder in results/"
        raise BundleError(
            f"run_id: '{run_id}' {fault} and cannot be verified elsewhere. Give one that was "
            f"reported. {runs(results, REPORT)} Nothing was written."
        )
    if (process := lock.holder(run_dir)) is not None:
        raise BundleError(
            f"run_id: '{run_id}' is under way in process {process}, and its documents are not of "
            "all that it measured. Wait until it ends. Nothing was written."
        )
    underived = [
        repetition.place
        for repetition in RunDir(run_dir).described()
        if not repetition.result.exists()
    ]
    if underived:
        raise BundleError(
            f"run_id: '{run_id}' was cut off: {plural(len(underived), 'repetition')} without a "
            f"result, {underived[0]} the first. Run lab.yml or playbooks/collect.yml with "
            f"{plans.resume_args(run_dir)} first. Nothing was written."
        )


def names(run_dir: Path) -> list[str]:
    """Return the sorted paths of a run's files, relative to its folder.

    Hidden files are left out, as they are being written. Raises BundleError for anything but a
    plain file, for a name that the lab never gives, and beyond the limits.
    """
    sizes: dict[str, int] = {}
    for path in run_dir.rglob("*"):
        name = path.relative_to(run_dir).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BundleError(f"{name} is no plain file")
        if path.is_file() and not path.name.startswith(".") and name not in (SUMS, SIGNATURE):
            sizes[checked_name(name)] = path.stat().st_size
    if len(sizes) > FILES_MAX:
        raise BundleError(f"has {len(sizes):,} files, limit {FILES_MAX:,}")
    for name, size in sizes.items():
        refuse_size(name, size)
    if sum(sizes.values()) > BYTES_MAX:
        raise BundleError(f"has {sum(sizes.values()):,} bytes, limit {BYTES_MAX:,}")
    return sorted(sizes)


def pack(run_dir: Path, archive: Path, sign: Callable[[bytes], Signed] | None = None) -> Packed:
    """Write the run to ``archive``, whole or not at all; return what was written.

    ``sign``: signs the list of sums. Raises BundleError as names() does.
    """
    files = names(run_dir)
    sums = sums_of(run_dir, files)
    signed = sign(sums) if sign else None
    signature = signed.signature if signed else None
    temporary = archive.with_name(f".{archive.name}")
    try:
        with temporary.open("wb") as file:
            with GzipFile("", "wb", 9, file, mtime=0) as packed:
                write(run_dir, files, (sums, signature), packed)
            size = file.tell()
        with temporary.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        temporary.replace(archive)
    finally:
        temporary.unlink(missing_ok=True)
    return {
        "files": len(files),
        "bytes": size,
        "sha256": sha256,
        "signer": signed.fingerprint if signed else None,
    }


def checked_name(name: str) -> str:
    """Return the name of a file. Raises BundleError for one that the lab never gives."""
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise BundleError(f"has a file of the name {name!r}, which is none that the lab gives")
    return name


def refuse_size(name: str, size: int) -> None:
    """Raise BundleError for a file of more bytes than the limit."""
    if size > FILE_BYTES_MAX:
        raise BundleError(f"has {name} of {size:,} bytes or more, limit {FILE_BYTES_MAX:,}")


def sums_of(run_dir: Path, names: list[str]) -> bytes:
    """Return SHA256SUMS of these files of a run."""
    lines = []
    for name in names:
        with (run_dir / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines).encode()


def write(run_dir: Path, names: list[str], listed: tuple[bytes, bytes | None], out: _Out) -> None:
    """Write the tar stream of a run; it depends only on names and contents.

    ``listed``: the list of sums, and its signature or None.
    """
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        top = run_dir.name
        for name, content in zip((SUMS, SIGNATURE), listed, strict=True):
            if content is not None:
                _add(tar, f"{top}/{name}", len(content), io.BytesIO(content))
        for name in names:
            with (run_dir / name).open("rb") as file:
                _add(tar, f"{top}/{name}", (run_dir / name).stat().st_size, file)


def _add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o644, _DATE
    tar.addfile(member, content)
