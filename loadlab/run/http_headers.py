"""Request headers of a load, checked."""

import re
from collections.abc import Iterable

from loadlab.run.errors import PlanError

# Set by the generators, or change how an answer is read or a connection is kept.
RESERVED = (
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
)  # fmt: skip
# Limit of all headers together; nginx's default buffers take 8 KiB.
HEADERS_BYTES = 4096
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")


def checked(
    pairs: Iterable[tuple[str, str]], how: str, reserved: Iterable[str] = RESERVED
) -> dict[str, str]:
    """Return name -> value. ``how``: a sentence on how to give headers.

    Raises PlanError for a malformed, repeated or reserved header, and above HEADERS_BYTES.
    """
    checked_headers: dict[str, str] = {}
    for name, text in ((name.strip(), text.strip()) for name, text in pairs):
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(text):
            raise PlanError(
                f"headers: {name!r} with {text!r} is no header: a name has letters, digits and "
                f"dashes, a value printable ASCII on one line. {how}"
            )
        if name.lower() in reserved:
            raise PlanError(
                f"headers: {name} is not to be set, it is the generator's own or changes what is "
                f"measured. Not to be set are: {', '.join(reserved)}."
            )
        if name.lower() in (taken.lower() for taken in checked_headers):
            raise PlanError(f"headers: {name} is there twice. Give it once.")
        checked_headers[name] = text
    size = sum(len(name) + len(text) + 4 for name, text in checked_headers.items())
    if size > HEADERS_BYTES:
        raise PlanError(
            f"headers: {size} bytes in all, at most {HEADERS_BYTES} may be. Give fewer or shorter."
        )
    return checked_headers
