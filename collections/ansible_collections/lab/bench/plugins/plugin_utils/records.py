"""Convert Ansible's values to the lab's records."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from loadlab.run.errors import LabError

T = TypeVar("T")


def convert(value: object, kind: type[T]) -> T:
    """Return a value of a play as this type. Raises LabError with the path and the reason.

    Texts become numbers and booleans where these are expected, as -e gives texts.
    """
    target: Any = kind
    if get_origin(kind) is Iterable and isinstance(value, Iterable):
        # msgspec has no type for it. A mapping stands for its keys.
        target, value = list[get_args(kind)], list(value)  # type: ignore[misc]
    try:
        converted: T = msgspec.convert(
            plain(value), target, strict=False, from_attributes=True, dec_hook=_other
        )
    except msgspec.ValidationError as error:
        raise LabError(str(error)) from error
    return converted


def _other(kind: type, value: Any) -> Any:
    """Return a value as a type that msgspec does not know."""
    if kind is object:
        return value
    if kind is not Path:
        raise NotImplementedError(f"no value of a play becomes {kind}")
    return Path(os.path.expandvars(value)).expanduser()


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
