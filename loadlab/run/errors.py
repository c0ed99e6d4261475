"""Exceptions that end a stage with a message for the user."""

import re

# A word longer than the name of any file, which only what was typed wrongly has; and what ends it.
_LONG = re.compile(r"(\S{60})\S{196,}?(['\",.:;)]*)(?!\S)")


class LabError(ValueError):
    """A message for the user, which names the value, the limit and the remedy.

    It alone is shown as such. Any other exception is a bug of the lab, and looks like one.
    """


class ResultError(LabError):
    """A file of a repetition or a run is absent or malformed."""


class SchemaError(ResultError):
    """A document is of a schema that this version of the lab does not read."""


class PlanError(LabError):
    """The user's options cannot be carried out; the text says which, why, and what to do.

    Of a word with more than 255 characters, the first 60 are shown.
    """

    def __init__(self, text: object) -> None:
        super().__init__(_LONG.sub(r"\1…\2", str(text)))
