"""Unpack the archive of a run, which is not trusted.

It is refused, naming the file, where it holds anything but plain files of one run, exceeds the
limits of archive.py, or differs from its list. It is also refused where packing its files again
gives other bytes.
"""

import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from loadlab.bundle import archive as archives
from loadlab.bundle.archive import SIGNATURE, SUMS, BundleError, Digest, names
from loadlab.run import documents
from loadlab.run.catalog import path_of
from loadlab.run.run_dir import RUN_ID

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"  # the header that GzipFile writes without name and time
_CHUNK = 1 << 20
_SIGNATURE_MAX = 1 << 16  # bytes; that of an RSA key with 16384 bits has 6000


class Unpacked(NamedTuple):
    """An unpacked bundle: the run's folder, its list of sums, and the signature of that list, or
    None."""

    run_dir: Path
    sums: bytes
    signature: bytes | None


class _Small(io.FileIO):
    """A file that limits how much tarfile reads at once, as the archive's maker sets
    header sizes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _CHUNK:
            raise BundleError(f"has a header of {size:,} bytes, {_CHUNK:,} at most are read")
        return super().read(size) or b""


def refuse_absent(archive: str) -> None:
    """Raise BundleError where no archive was named, the named file does not exist, or nothing can
    be written beside it."""
    path = path_of(Path(), "bundle", archive)
    if not path.is_file():
        fault = f"'{archive}' is not a file" if archive else "none was given"
        raise BundleError(
            f"bundle: {fault}. Give the path of an archive that python -m loadlab "
            "bundle wrote. Nothing was written."
        )
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise BundleError(
            f"bundle: '{archive}' is in a folder that you may not write to, and the report as "
            "derived again is put beside it. Copy it to another folder. Nothing was written."
        )


def unpack(archive: Path, into: Path) -> Unpacked:
    """Unpack an archive below the empty folder ``into``.

    Raises BundleError naming the problem; the files unpacked until then must not be used.
    """
    with tempfile.TemporaryDirectory(dir=into.parent) as beside:
        stream = Path(beside) / "stream"
        sha256 = _inflate(archive, stream)
        run_dir = _extract(stream, into)
    files = names(run_dir)
    sums = archives.sums_of(run_dir, files)
    _compare(documents.text(run_dir / SUMS), sums)
    for name in files:
        if name.endswith(".gz"):
            _inflate_within(run_dir / name, name)
    signature = _signature(run_dir / SIGNATURE)
    again = Digest()
    archives.write(run_dir, files, (sums, signature), again)
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
    digest = Digest()
    with stream.open("wb") as out:
        for piece in _chunks(archive):
            digest.write(piece)
            # Allow for a header and padding for each file.
            if digest.tell() > archives.BYTES_MAX + 4096 * archives.FILES_MAX:
                raise BundleError(f"unpacks to more than {archives.BYTES_MAX:,} bytes, the limit")
            out.write(piece)
    return digest.sha256.hexdigest()


def _inflate_within(path: Path, name: str) -> None:
    """Refuse a compressed file that would not fit into memory; a damaged one is evidence
    and stays."""
    size = 0
    try:
        for piece in _chunks(path):
            size += len(piece)
            archives.refuse_size(f"in {name} what unpacks to a file", size)
    except BundleError:
        if size > archives.FILE_BYTES_MAX:
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
                archives.checked_name(name)
                if not RUN_ID.fullmatch(top) or not name.startswith(f"{top}/"):
                    raise BundleError(f"has {name!r}, which is not in the folder of one run")
                if name in sizes:
                    raise BundleError(f"has {name!r} twice")
                sizes[name] = member.size
                # The total size was limited when the stream was written.
                if len(sizes) > archives.FILES_MAX:
                    raise BundleError(f"has more than {archives.FILES_MAX:,} files, the limit")
                archives.refuse_size(name, member.size)
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
