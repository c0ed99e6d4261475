"""Options of a load besides its pace: TLS, HTTP/2 and headers."""

from __future__ import annotations

import re

from loadlab.core.errors import PlanError
from loadlab.core.model import Options, OptionValue
from loadlab.generators import registry

# Set by the generators, or change how an answer is read or a connection is kept.
RESERVED = (
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
)  # fmt: skip
# Limit of all headers together; nginx's default buffers take 8 KiB.
HEADERS_BYTES = 4096
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_HOW = 'Give them as -e \'{"headers": {"Name": "value"}}\'.'


def headers(value: OptionValue) -> dict[str, str]:
    """Return name -> value, from a mapping, or from one or several "Name: value".

    Raises PlanError for a malformed, repeated or reserved header, and above HEADERS_BYTES.
    """
    if isinstance(value, dict):
        pairs = [(name, str(text)) for name, text in value.items()]
    else:
        lines = value if isinstance(value, list) else [value]
        pairs = [(name, text) for name, _, text in (str(line).partition(":") for line in lines)]
    found: dict[str, str] = {}
    for name, text in ((name.strip(), text.strip()) for name, text in pairs):
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(text):
            raise PlanError(
                f"headers: {name!r} with {text!r} is no header: a name has letters, digits and "
                f"dashes, a value printable ASCII on one line. {_HOW}"
            )
        if name.lower() in RESERVED:
            raise PlanError(
                f"headers: {name} is not to be set, it is the generator's own or changes what is "
                f"measured. Not to be set are: {', '.join(RESERVED)}."
            )
        if name.lower() in (known.lower() for known in found):
            raise PlanError(f"headers: {name} is there twice. Give it once.")
        found[name] = text
    size = sum(len(name) + len(text) + 4 for name, text in found.items())
    if size > HEADERS_BYTES:
        raise PlanError(
            f"headers: {size} bytes in all, at most {HEADERS_BYTES} may be. Give fewer or shorter."
        )
    return found


def refuse(options: Options) -> None:
    """Raise PlanError for a combination of load options and reverse_proxy that cannot work."""
    if options.tls and options.reverse_proxy == "none":
        raise PlanError(
            "tls: nginx speaks it, and reverse_proxy=none leaves nginx out. Leave one of the two "
            "out."
        )
    if options.http2 and not options.tls:
        raise PlanError("http2: it is spoken over TLS only. Give -e tls=true with it.")
    if options.http2 and not registry.get(options.generator).http2:
        raise PlanError(
            f"http2: generator={options.generator} speaks HTTP/1.1 only. Give "
            f"-e generator={registry.speaking_http2()[0]}, or leave http2 out."
        )
    if options.http2 and not options.keepalive:
        raise PlanError(
            "keepalive: HTTP/2 keeps its connections. Leave http2 or keepalive=false out."
        )
