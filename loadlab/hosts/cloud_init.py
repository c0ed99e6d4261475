"""Judge a host's first boot by what `cloud-init status --format=json` prints."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from loadlab.core.formatting import one_line

# cloud-init still does what a deprecated key asks, so its remark on one is no fault of the boot.
DEPRECATED = "DEPRECATED"


class _Status(Struct, frozen=True, kw_only=True):
    """What the lab reads of the status.

    ``status``: done, error, running, disabled, or "not started" ("not run" before 23.4).
    ``recoverable_errors``: level of the log -> messages; absent before 23.4.
    """

    status: str
    detail: str = ""
    errors: list[str] = field(default_factory=list)
    recoverable_errors: dict[str, list[str]] = field(default_factory=dict)


def refusal(status_json: str) -> str:
    """Return why a host's first boot is not accepted; "" where cloud-init did all it was asked.

    ``status_json``: what `cloud-init status --format=json` printed.
    """
    try:
        found = msgspec.json.decode(status_json, type=_Status)
    except msgspec.DecodeError as problem:
        said = one_line(status_json) or "nothing"
        return f"The status of cloud-init is not readable ({problem}). It printed: {said}"
    warned = [
        f"{level}: {message}"
        for level, messages in found.recoverable_errors.items()
        if level != DEPRECATED
        for message in messages
    ]
    # One fault may be an error of its stage and a warning, or an error of two stages.
    faults = list(dict.fromkeys(one_line(one) for one in [*found.errors, *warned]))
    if found.status == "done" and not faults:
        return ""
    reasons = "; ".join(faults) or one_line(found.detail) or "it gives no reason"
    return f"cloud-init says '{found.status}' of the first boot: {reasons}"
