"""Convert Ansible's values to the lab's records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def convert(value: object, kind: type[T]) -> T:
    """Return a value of a play as this type. Raises ValueError with the path and the reason.

    Texts become numbers and booleans where these are expected, as -e gives texts.
    """
    return msgspec.convert(plain(value), kind, strict=False, dec_hook=_path)


def _path(kind: type, text: str) -> Path:
    return Path(os.path.expandvars(text)).expanduser()


def plain(value: object) -> Any:
    """Return a value of a play without Ansible's subclasses of str, int and so on, which msgspec
    refuses."""
    if isinstance(value, Mapping):
        return {str(key): plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [plain(child) for child in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value
