"""The form of a table of words."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from loadlab.model import Reason


class Entry(NamedTuple):
    """One code: the words for its reasons, without the code; what the user can do, or None."""

    words: Callable[[Reason], str]
    remedy: str | None = None


def template(text: str) -> Callable[[Reason], str]:
    """Return the words that ``text`` is once a reason's value, limit and facts are filled in."""
    return lambda reason: text.format(value=reason.value, limit=reason.limit, **reason.facts)


Table: TypeAlias = dict[str, Entry]
