"""Judge a host's first boot by what `cloud-init status --format=json` prints."""

import msgspec
from msgspec import Struct, field

from loadlab.run.formatting import one_line

# Levels of cloud-init's log that are errors. A deprecated key is obeyed, and what a warning names
# was done or is of the image: Debian's daily images end their boot with one.
_ERRORS = {"ERROR", "CRITICAL"}
_IGNORED = {"DEPRECATED"}
# The lab asks for package lists, so it is an error if only a warning says that they were not read.
_LISTS = "package update failed"


class _Status(Struct, frozen=True, kw_only=True):
    """What the lab reads of the status."""

    status: str  #: done, error, running, disabled, or "not started" ("not run" before 23.4).
    detail: str = ""
    errors: list[str] = field(default_factory=list)
    #: Level of the log -> messages; absent before 23.4.
    recoverable_errors: dict[str, list[str]] = field(default_factory=dict)


class FirstBoot(Struct, frozen=True):
    """Why the boot is not accepted ("" where it is), and what cloud-init warned of."""

    refusal: str
    warnings: list[str]


def first_boot(status_json: str) -> FirstBoot:
    """Judge a first boot.

    ``status_json``: what `cloud-init status --format=json` printed.
    """
    try:
        status = msgspec.json.decode(status_json, type=_Status)
    except msgspec.DecodeError as problem:
        said = one_line(status_json) or "nothing"
        return FirstBoot(
            f"The status of cloud-init is not readable ({problem}). It printed: {said}", []
        )
    # One fault may be an error of its stage and a warning, or an error of two stages.
    errors = dict.fromkeys(map(one_line, status.errors))
    warnings: dict[str, None] = {}
    for level, messages in status.recoverable_errors.items():
        for message in () if level in _IGNORED else map(one_line, messages):
            error = level in _ERRORS or _LISTS in message.lower()
            (errors if error else warnings)[f"{level}: {message}"] = None
    if status.status == "done" and not errors:
        return FirstBoot("", list(warnings))
    reasons = "; ".join([*errors, *warnings]) or one_line(status.detail) or "it gives no reason"
    return FirstBoot(f"cloud-init says '{status.status}' of the first boot: {reasons}", [])
