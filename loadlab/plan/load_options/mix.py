"""The option mix: read it, and refuse it where a load cannot have it."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import GivenOptions, Item, Options, kinds_of
from loadlab.plan.load_options import request_records
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
    """Raise PlanError for a mix of which no record could be kept."""
    # A closed loop may become a lane of a generator that reads it, see refuse_unread().
    if options.mix is None or OPTION not in registry.get(options.generator).options:
        return
    requests = request_records.requests_due(options)
    request_records.refuse_unrecorded(options, OPTION, "the kind of a request is")
    request_records.refuse_beyond(options, OPTION, f"{requests:,.0f} requests", requests)


def refuse_unread(options: Options, planned: Iterable[Item]) -> None:
    """Raise PlanError where the generator of an item cannot send its mix."""
    for item in planned:
        cell = item.cell
        if len(kinds_of(cell.endpoint)) > 1 and not (cell.load.session or cell.load.replay):
            own = replace(options, generator=cell.load.generator)
            request_records.refuse_unread(own, OPTION, "sends one kind of request")
