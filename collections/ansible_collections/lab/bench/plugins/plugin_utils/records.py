"""Convert Ansible's values to the lab's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from loadlab.run.errors import LabError

T = TypeVar("T")


def decode(value: object, kind: type[T]) -> T:
    """Return a value of a play as this type. Raises LabError with the path and the reason."""
    try:
        return msgspec.convert(plain(value), kind)
    except msgspec.ValidationError as error:
        raise LabError(str(error)) from error


def plain(value: object) -> Any:
    """Return a value of a play without Ansible's subclasses of str, int and so on, which msgspec
    refuses."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value
