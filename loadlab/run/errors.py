"""Exceptions that end a stage with a message for the user."""


class LabError(ValueError):
    """A message for the user, which names the value, the limit and the remedy.

    It alone is shown as such. Any other exception is a bug of the lab, and looks like one.
    """


class ResultError(LabError):
    """A file of a repetition or a run is absent or malformed."""


class SchemaError(ResultError):
    """A document is of a schema that this version of the lab does not read."""


class PlanError(LabError):
    """The user's options cannot be carried out; the text says which, why, and what to do."""
