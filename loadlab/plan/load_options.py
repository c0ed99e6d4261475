"""Options of a load besides its pace: TLS, HTTP/2 and headers."""

from __future__ import annotations

from loadlab.generators import registry
from loadlab.model import Options, OptionValue
from loadlab.run import http_headers
from loadlab.run.errors import PlanError

_HOW = 'Give them as -e \'{"headers": {"Name": "value"}}\'.'


def headers(value: OptionValue) -> dict[str, str]:
    """Return name -> value, from a mapping, or from one or several "Name: value".

    Raises PlanError as core/http_headers.py does.
    """
    if isinstance(value, dict):
        pairs = [(name, str(text)) for name, text in value.items()]
    else:
        lines = value if isinstance(value, list) else [value]
        pairs = [(name, text) for name, _, text in (str(line).partition(":") for line in lines)]
    return http_headers.checked(pairs, _HOW)


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
