"""The option mix: read it, and refuse it where a load cannot have it."""

import re

from loadlab.model import GivenOptions, Options
from loadlab.plan import request_records
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plural

OPTION = "mix"
KINDS_MIN, KINDS_MAX = 2, 16
# Requests of a block, in which each kind has as many as its weight.
BLOCK_MAX = 1_000
_KIND = re.compile(r"([^:]+):(\d{1,9})")
_EXAMPLE = f"-e {OPTION}=index:70,agents:25,write:5"


def parse(text: str) -> str:
    """Return a mix such as index:70,agents:25, without spaces and slashes.

    Raises PlanError for another form, for the same endpoint twice, and out of limits.
    """
    words = [word.strip().lstrip("/") for word in text.split(",")]
    pairs = []
    for word in words:
        match = _KIND.fullmatch(word)
        if match is None or int(match[2]) == 0:
            raise PlanError(
                f"{OPTION}: '{word}' is no endpoint with its weight, a whole number from 1. Give "
                f"them as {_EXAMPLE}."
            )
        pairs.append((match[1], int(match[2])))
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise PlanError(f"{OPTION}: {twice[0]} is there twice. Give it once, with one weight.")
    if not KINDS_MIN <= len(pairs) <= KINDS_MAX:
        alone = f" Of one, give -e endpoint={names[0]}." if len(pairs) < KINDS_MIN else ""
        raise PlanError(
            f"{OPTION}: '{text}' has {plural(len(pairs), 'endpoint')}, and a mix has "
            f"{KINDS_MIN} to {KINDS_MAX}.{alone or ' Leave some out.'}"
        )
    block = sum(weight for _, weight in pairs)
    if block > BLOCK_MAX:
        raise PlanError(
            f"{OPTION}: the weights of '{text}' add up to {block:,}, and each block of so many "
            f"requests has the weights; {BLOCK_MAX:,} is the limit. Give smaller weights."
        )
    return ",".join(f"{name}:{weight}" for name, weight in pairs)


def refuse_beside(values: GivenOptions) -> None:
    """Raise PlanError where an endpoint is given beside a mix."""
    if values.get(OPTION) and values.get("endpoint"):
        raise PlanError(
            f"endpoint: the {OPTION} {values[OPTION]} names the endpoints. Leave endpoint or "
            f"{OPTION} out."
        )


def refuse(options: Options) -> None:
    """Raise PlanError for a mix that the generator or its records cannot keep."""
    if options.mix is None:
        return
    requests = request_records.requests_due(options)
    request_records.refuse_unread(options, OPTION, "sends one kind of request")
    request_records.refuse_unrecorded(options, OPTION, "the kind of a request is")
    request_records.refuse_beyond(options, OPTION, f"{requests:,.0f} requests", requests)
