"""The requests with which a client verifies answers: how often, and by which command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from msgspec import Struct

from loadlab.stacks.contract import ANSWER_BYTES_MAX, Contract, is_recorded

# Seconds that an answer may take.
_SECONDS = 10


class VerifyingRequest(Struct, frozen=True):
    """One request: the endpoint's name, and the shell command that prints its whole answer."""

    name: str
    command: str


def times(contract: Contract) -> int:
    """Return how often an endpoint is asked: twice to learn what its answers have in common."""
    return 2 if is_recorded(contract) else 1


def request_options(contract: Contract) -> list[str]:
    """Return curl's options for the method, headers and body of an endpoint."""
    options = ["--request", contract.get("method", "GET")]
    for name, value in contract.get("headers", {}).items():
        options += ["--header", f"{name}: {value}"]
    return [*options, *(["--data-raw", contract["body"]] if contract.get("body") else [])]


def requests(
    contracts: Mapping[str, Contract], urls: Mapping[str, str], mark: str
) -> list[VerifyingRequest]:
    """Return the requests to verify endpoints with, in the order of ``contracts``.

    ``urls``: name -> scheme, host and port. Each command prints the answer, at most
    ANSWER_BYTES_MAX, and curl's message, ``mark``, the seconds it took and ``mark`` again.
    """
    commands = []
    for name, contract in contracts.items():
        words = [
            *("curl", "--silent", "--show-error", "--include", "--max-time", str(_SECONDS)),
            *request_options(contract),
            *("--write-out", f"%{{stderr}}{mark}%{{time_total}}{mark}", "--output", "-"),
            urls[name] + contract["path"],
        ]
        # An answer may be endless. curl's message and total time follow the answer.
        command = (
            f"said=$({{ {shlex.join(words)} 2>&4 | head -c {ANSWER_BYTES_MAX} >&3; }} 4>&1)\n"
            "printf '%s' \"$said\""
        )
        commands += [VerifyingRequest(name, command)] * times(contract)
    return commands
