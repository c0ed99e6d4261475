"""Exceptions that end a stage with a message for the user."""

from __future__ import annotations


class ResultError(ValueError):
    """A file of a repetition or a run is absent or malformed."""


class SchemaError(ResultError):
    """A document is of a schema that this version of the lab does not read."""


class PlanError(ValueError):
    """The user's options cannot be carried out; the text says which, why, and what to do."""
