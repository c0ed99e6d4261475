"""What ends the lab's work, as exceptions."""

from __future__ import annotations


class ResultError(ValueError):
    """A file of a repetition or a run that is absent or not what it should be."""


class PlanError(ValueError):
    """The user's words cannot be carried out; the text says which, why, and what to do."""
