"""Read and write the JSON documents of a run.

Files are written whole or not at all. Errors name the file.
"""

import gzip
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from loadlab.model import SCHEMA, Record
from loadlab.run import formatting
from loadlab.run.errors import ResultError, SchemaError
from loadlab.run.run_dir import MANIFEST

R = TypeVar("R", bound=msgspec.Struct)


def write(path: Path, data: bytes) -> None:
    """Write data to path, see fill()."""
    fill(path, lambda file: file.write(data))


def fill(path: Path, content: Callable[[BinaryIO], object]) -> None:
    """Let ``content`` write a file: a temporary name in the same directory, fsync, then rename.

    The file mode becomes 0644. Raises OSError; the temporary file is then removed.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            content(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def pack(source: Path, target: Path, level: int) -> None:
    """Write a file's content, compressed at a level of gzip, to ``target``, see fill()."""

    def content(packed: BinaryIO) -> None:
        # Without a name and a time, equal files give equal bytes.
        with source.open("rb") as file, gzip.GzipFile("", "wb", level, packed, mtime=0) as zipped:
            shutil.copyfileobj(file, zipped)

    fill(target, content)


def dump(document: object) -> bytes:
    """Return a document, a record or plain JSON values, as JSON bytes.

    Keys are sorted and a newline ends the file. Raises ValueError for NaN and infinity.
    """
    # json, as msgspec refuses subclasses of str, which Ansible's values are.
    text = json.dumps(
        document,
        indent=1,
        sort_keys=True,
        allow_nan=False,
        ensure_ascii=False,
        default=msgspec.to_builtins,
    )
    return text.encode() + b"\n"


def text(path: Path) -> str:
    """Return a file's text. Raises ResultError naming the file if it is absent, cannot be read or
    is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ResultError(f"{path.name} is not there") from error
    except UnicodeDecodeError as error:
        raise ResultError(f"{path.name} is no UTF-8 text: {error}") from error
    except OSError as error:
        raise ResultError(f"{path.name} cannot be read: {error.strerror}") from error


def load(path: Path) -> dict[str, Any]:
    """Return a file's JSON object. Raises ResultError naming the file if it holds none."""
    content = text(path)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path.name} is truncated or no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ResultError(f"{path.name} is no JSON object: {content[:80]!r}")
    return document


def _refuse_older(document: Mapping[str, object], record: type[msgspec.Struct], path: Path) -> None:
    """Raise SchemaError for a document of an older schema, which this version cannot read.

    Where the record has a schema, so must the document.
    """
    has_schema = record.__struct_config__.tag_field == "schema"
    written = document.get("schema", None if has_schema else SCHEMA)
    if written != SCHEMA:
        its = "no schema" if written is None else f"schema {formatting.one_line(str(written), 40)}"
        raise SchemaError(
            f"{path} has {its}, and this version of the lab reads {SCHEMA} alone: measure again as "
            f"a new run, or use the release that wrote it, which the run's {MANIFEST} names"
        )


def decode(value: object, record: type[R], name: str) -> R:
    """Return JSON values as a record of this type.

    Raises ResultError with ``name``, the path of the wrong value and the reason.
    """
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        raise ResultError(f"{name}: {error}") from error


def read(path: Path, record: type[R]) -> R:
    """Return a file's JSON object as a record of this type.

    Raises ResultError with the file's name, the path of the wrong value and the reason; SchemaError
    with the remedy for a document of an older schema.
    """
    document = load(path)
    _refuse_older(document, record, path)
    return decode(document, record, path.name)


def read_or_none(path: Path, record: type[R]) -> R | None:
    """Return a document; None where there is no file. Raises ResultError as read() does."""
    return read(path, record) if path.exists() else None


def encode(record: Record) -> bytes:
    """Return a record as the bytes of its document.

    Raises ResultError where a value is not allowed, as the type of a field is not checked before.
    """
    decode(msgspec.to_builtins(record), type(record), type(record).__name__)
    return dump(record)


def digest(data: bytes) -> str:
    """Return the SHA-256 of data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal, without reading it whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
