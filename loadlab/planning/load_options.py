"""Options of a load besides its pace: TLS, HTTP/2, headers, and the number of clients.

A cell's load has `tls`, `http2` and `headers` only where they were asked for, and `clients` only
where the inventory has several clients to a server.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from loadlab.core.errors import PlanError
from loadlab.core.formatting import plural

# Generators that support HTTP/2.
SPEAK_HTTP2 = ("oha",)
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


def headers(value: Any) -> dict[str, str]:
    """Return name -> value, from a mapping, or from one or several "Name: value".

    Raises PlanError for a malformed, repeated or reserved header, and above HEADERS_BYTES.
    """
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        lines = value if isinstance(value, list) else [value]
        pairs = [str(line).partition(":")[::2] for line in lines]
    found: dict[str, str] = {}
    for name, text in ((str(name).strip(), str(text).strip()) for name, text in pairs):
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


def refuse(values: Mapping[str, Any]) -> None:
    """Raise PlanError where the options tls, http2, keepalive, front and generator cannot be
    combined."""
    generator = values["generator"]
    if values["tls"] and values["front"] == "none":
        raise PlanError(
            "tls: nginx speaks it, and front=none leaves nginx out. Leave one of the two out."
        )
    if values["http2"] and not values["tls"]:
        raise PlanError("http2: it is spoken over TLS only. Give -e tls=true with it.")
    if values["http2"] and generator not in SPEAK_HTTP2:
        raise PlanError(
            f"http2: generator={generator} speaks HTTP/1.1 only. Give "
            f"-e generator={SPEAK_HTTP2[0]}, or leave http2 out."
        )
    if values["http2"] and not values["keepalive"]:
        raise PlanError(
            "keepalive: HTTP/2 keeps its connections. Leave http2 or keepalive=false out."
        )


def asked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that these options add to a cell's load: tls, http2, headers, clients
    if set."""
    return {
        name: values[name] for name in ("tls", "http2", "headers", "clients") if values.get(name)
    }


def slug(load: Mapping[str, Any]) -> list[str]:
    """Return the parts of a cell's id for these options."""
    parts = ["http2" if load.get("http2") else "tls"] if load.get("tls") else []
    if load.get("headers"):
        text = json.dumps(load["headers"], sort_keys=True)
        parts.append(f"headers{hashlib.sha256(text.encode()).hexdigest()[:8]}")
    if "clients" in load:
        parts.append(f"{load['clients']}clients")
    return parts


def words(load: Mapping[str, Any]) -> dict[str, str]:
    """Return {tls, headers, clients} in words, also where none was asked for, to distinguish two
    loads."""
    protocol = "HTTP/2 over TLS" if load.get("http2") else "TLS" if load.get("tls") else "no TLS"
    named = [f"{name}: {text}" for name, text in (load.get("headers") or {}).items()]
    return {
        "tls": protocol,
        "headers": f"with {', '.join(named)}" if named else "no headers",
        "clients": f"from {plural(load.get('clients', 1), 'client')}",
    }
