"""Pack a run into one archive, and unpack it safely.

The same files give the same bytes: names are sorted, and there is no owner and a single date. The
archive has a SHA256SUMS, which `sha256sum --check` also reads, and a SHA256SUMS.sig if it was
signed. An archive from elsewhere is not trusted. It is refused, naming the file, where it holds
anything but plain files of one run, exceeds the limits below, or differs from its list. It is also
refused where packing its files again gives other bytes.
"""

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from gzip import GzipFile
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypedDict

from loadlab.bundle.signature import Signed
from loadlab.plan import plan_document as plans
from loadlab.run import documents
from loadlab.run.catalog import runs
from loadlab.run.errors import LabError
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
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"  # the header that GzipFile writes without name and time
_CHUNK = 1 << 20
_SIGNATURE_MAX = 1 << 16  # bytes; that of an RSA key with 16384 bits has 6000


class BundleError(LabError):
    """A run cannot be packed, or an archive is refused; the text says why."""


class Packed(TypedDict):
    """A bundle: the number of files in it, its bytes, its SHA-256, and the fingerprint of the key
    that signed it or None."""

    files: int
    bytes: int
    sha256: str
    signer: str | None


class Unpacked(NamedTuple):
    """An unpacked bundle: the run's folder, its list of sums, and the signature of that list, or
    None."""

    run_dir: Path
    sums: bytes
    signature: bytes | None


class _Out(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def tell(self) -> int: ...


class _Digest:
    """A write-only stream that keeps the SHA-256 and the size of what is written."""

    def __init__(self) -> None:
        self.sha256, self._size = hashlib.sha256(), 0

    def write(self, data: bytes, /) -> None:
        self.sha256.update(data)
        self._size += len(data)

    def tell(self) -> int:
        return self._size


class _Small(io.FileIO):
    """A file that limits how much tarfile reads at once, as the archive's maker sets
    header sizes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _CHUNK:
            raise BundleError(f"has a header of {size:,} bytes, {_CHUNK:,} at most are read")
        return super().read(size) or b""


def refuse(results: Path, run_id: str) -> None:
    """Raise BundleError where the run is incomplete; ``run_id`` may be "latest"."""
    run_dir = (results / run_id).resolve()
    absent = [name for name in NEEDED if not (run_dir / name).exists()]
    named = run_id == LATEST or RUN_ID.fullmatch(run_id)
    if absent or not named:
        fault = f"has no {', '.join(absent)}" if named else "cannot name a folder in results/"
        raise BundleError(
            f"run_id: '{run_id}' {fault} and cannot be verified elsewhere. Give one that was "
            f"reported. {runs(results, REPORT)} Nothing was written."
        )
    underived = [
        repetition.place
        for repetition in RunDir(run_dir).described()
        if not repetition.result.exists()
    ]
    if underived:
        raise BundleError(
            f"run_id: '{run_id}' was cut off: {len(underived)} repetitions have no result, "
            f"{underived[0]} the first. Run lab.yml or playbooks/collect.yml with "
            f"{plans.resume_args(run_dir)} first. Nothing was written."
        )


def refuse_absent(archive: str) -> None:
    """Raise BundleError where no archive was named, the named file does not exist, or nothing can
    be written beside it."""
    if not Path(archive).is_file():
        fault = f"'{archive}' is not a file" if archive else "none was given"
        raise BundleError(
            f"bundle: {fault}. Give the path of an archive that python -m loadlab "
            "bundle wrote. Nothing was written."
        )
    if not os.access(Path(archive).absolute().parent, os.W_OK | os.X_OK):
        raise BundleError(
            f"bundle: '{archive}' is in a folder that you may not write to, and the report as "
            "derived again is put beside it. Copy it to another folder. Nothing was written."
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
            sizes[_checked(name)] = path.stat().st_size
    if len(sizes) > FILES_MAX:
        raise BundleError(f"has {len(sizes):,} files, limit {FILES_MAX:,}")
    for name, size in sizes.items():
        _limit(name, size)
    if sum(sizes.values()) > BYTES_MAX:
        raise BundleError(f"has {sum(sizes.values()):,} bytes, limit {BYTES_MAX:,}")
    return sorted(sizes)


def pack(run_dir: Path, archive: Path, sign: Callable[[bytes], Signed] | None = None) -> Packed:
    """Write the run to ``archive``, whole or not at all; return what was written.

    ``sign``: signs the list of sums. Raises BundleError as names() does.
    """
    files = names(run_dir)
    sums = _sums(run_dir, files)
    signed = sign(sums) if sign else None
    signature = signed.signature if signed else None
    temporary = archive.with_name(f".{archive.name}")
    try:
        with temporary.open("wb") as file:
            with GzipFile("", "wb", 9, file, mtime=0) as packed:
                _write(run_dir, files, (sums, signature), packed)
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


def unpack(archive: Path, into: Path) -> Unpacked:
    """Unpack an archive below the empty folder ``into``.

    Raises BundleError naming the problem; the files unpacked until then must not be used.
    """
    with tempfile.TemporaryDirectory(dir=into.parent) as beside:
        stream = Path(beside) / "stream"
        sha256 = _inflate(archive, stream)
        run_dir = _extract(stream, into)
    files = names(run_dir)
    sums = _sums(run_dir, files)
    _compare(documents.text(run_dir / SUMS), sums)
    for name in files:
        if name.endswith(".gz"):
            _inflate_within(run_dir / name, name)
    signature = _signature(run_dir / SIGNATURE)
    again = _Digest()
    _write(run_dir, files, (sums, signature), again)
    if again.sha256.hexdigest() != sha256:
        raise BundleError(
            "is not what packing its files gives: a name, date or mode in it was changed, or "
            "something was added"
        )
    (run_dir / SUMS).unlink()
    (run_dir / SIGNATURE).unlink(missing_ok=True)
    return Unpacked(run_dir, sums, signature)


def _signature(path: Path) -> bytes | None:
    if not path.exists():
        return None
    if path.stat().st_size > _SIGNATURE_MAX:
        raise BundleError(f"has a {SIGNATURE} of more than {_SIGNATURE_MAX:,} bytes, the limit")
    return path.read_bytes()


def listed(sums: bytes) -> dict[str, str]:
    """Return the SHA-256 of each file that a list of sums has, by name."""
    return {line[66:]: line[:64] for line in sums.decode().splitlines()}


def _checked(name: str) -> str:
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise BundleError(f"has a file of the name {name!r}, which is none that the lab gives")
    return name


def _limit(name: str, size: int) -> None:
    if size > FILE_BYTES_MAX:
        raise BundleError(f"has {name} of {size:,} bytes or more, limit {FILE_BYTES_MAX:,}")


def _sums(run_dir: Path, names: list[str]) -> bytes:
    lines = []
    for name in names:
        with (run_dir / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines).encode()


def _write(run_dir: Path, names: list[str], listed: tuple[bytes, bytes | None], out: _Out) -> None:
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


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a gzip file in pieces.

    Raises BundleError where it is not gzip, is damaged, or has data after its end.
    """
    inflater = zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        left = b""
        while not inflater.eof:
            left = left or file.read(_CHUNK)
            if not left:
                raise BundleError("ends in the middle")
            try:
                piece = inflater.decompress(left, _CHUNK)
            except zlib.error as problem:
                raise BundleError(f"is no gzip file, or damaged: {problem}") from problem
            left = inflater.unconsumed_tail
            yield piece
        if inflater.unused_data or file.read(1):
            raise BundleError("goes on after its end")


def _inflate(archive: Path, stream: Path) -> str:
    """Write the tar stream of an archive to ``stream``; return its SHA-256."""
    with archive.open("rb") as file:
        if file.read(len(_HEAD)) != _HEAD:
            raise BundleError("does not begin as a bundle does")
    digest = _Digest()
    with stream.open("wb") as out:
        for piece in _chunks(archive):
            digest.write(piece)
            # Allow for a header and padding for each file.
            if digest.tell() > BYTES_MAX + 4096 * FILES_MAX:
                raise BundleError(f"unpacks to more than {BYTES_MAX:,} bytes, the limit")
            out.write(piece)
    return digest.sha256.hexdigest()


def _inflate_within(path: Path, name: str) -> None:
    """Refuse a compressed file that would not fit into memory; a damaged one is evidence
    and stays."""
    size = 0
    try:
        for piece in _chunks(path):
            size += len(piece)
            _limit(f"in {name} what unpacks to a file", size)
    except BundleError:
        if size > FILE_BYTES_MAX:
            raise


def _extract(stream: Path, into: Path) -> Path:
    sizes: dict[str, int] = {}
    top = ""
    name = "its beginning"
    try:
        with tarfile.open(fileobj=_Small(stream), mode="r:") as tar:
            for member in tar:
                name = member.name
                top = top or name.partition("/")[0]
                if member.type != tarfile.REGTYPE or member.sparse is not None:
                    raise BundleError(f"has {name!r}, which is no plain file (a link, say)")
                _checked(name)
                if not RUN_ID.fullmatch(top) or not name.startswith(f"{top}/"):
                    raise BundleError(f"has {name!r}, which is not in the folder of one run")
                if name in sizes:
                    raise BundleError(f"has {name!r} twice")
                sizes[name] = member.size
                # The total size was limited when the stream was written.
                if len(sizes) > FILES_MAX:
                    raise BundleError(f"has more than {FILES_MAX:,} files, the limit")
                _limit(name, member.size)
                _unpack(tar, member, into / name)
    except BundleError:
        raise
    # tarfile raises any of these for a header it cannot interpret.
    except (tarfile.TarError, ValueError, LookupError, OverflowError) as problem:
        raise BundleError(f"is no tar archive, or damaged, after {name!r}: {problem}") from problem
    except OSError as problem:
        raise BundleError(f"cannot be unpacked, at {name!r}: {problem.strerror}") from problem
    if f"{top}/{SUMS}" not in sizes:
        raise BundleError(f"has no {SUMS}")
    return into / top


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a plain file. Python before 3.11.4 has no filter for TarFile.extract."""
    content = tar.extractfile(member)
    assert content is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as out:
        shutil.copyfileobj(content, out)


def _compare(sums: str, unpacked_sums: bytes) -> None:
    """Refuse files that differ from the list, by their names."""
    expected, unpacked = listed(sums.encode()), listed(unpacked_sums)
    common = sorted(set(expected) & set(unpacked))
    wrong = [
        *(f"{name} is listed and not there" for name in sorted(set(expected) - set(unpacked))),
        *(f"{name} is there and not listed" for name in sorted(set(unpacked) - set(expected))),
        *(f"{name} was changed" for name in common if expected[name] != unpacked[name]),
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise BundleError(f"is not as its {SUMS} says: {', '.join(wrong[:5])}{more}")
