"""The option connections: read `open`, and refuse it where a load cannot have it."""

from loadlab.generators import registry
from loadlab.model import Options, OptionValue
from loadlab.run.errors import PlanError

OPTION = "connections"
# Connections that are open at once, at most, where none are named.
LIMIT = 10_000
LIMIT_MAX = 60_000
_OPEN = "open"


def limit(value: OptionValue) -> int | None:
    """Return how many connections a load opens on demand, at most: of open or open:<limit>.

    None where the value is no such word, but numbers. Raises PlanError for a wrong limit.
    """
    word, colon, number = str(value).partition(":")
    if word != _OPEN:
        return None
    if not colon:
        return LIMIT
    if not number.isdecimal() or not 1 <= int(number) <= LIMIT_MAX:
        raise PlanError(
            f"{OPTION}: '{value}' has no limit from 1 to {LIMIT_MAX:,}. Give it as -e {OPTION}="
            f"{_OPEN}:<limit>, or -e {OPTION}={_OPEN} for {LIMIT:,}."
        )
    return int(number)


def refuse(options: Options) -> None:
    """Raise PlanError for connections on demand that the generator cannot open, or would anyway."""
    if not options.on_demand:
        return
    generator = registry.get(options.generator)
    if not generator.on_demand:
        raise PlanError(
            f"{OPTION}: generator={generator.name} opens a fixed number of connections. Give one "
            f"with -e {OPTION}=<number>, or -e generator={registry.opening_on_demand()}, without "
            "http2."
        )
    if not options.keepalive:
        raise PlanError(
            f"{OPTION}: keepalive=false opens a connection for each request anyway. Give the most "
            f"of them at once as -e {OPTION}=<number>, or leave keepalive out."
        )


def refuse_beside(value: OptionValue, compared: str) -> None:
    """Raise PlanError where ``compared``, such as candidates, would share a load that opens its
    connections on demand."""
    if limit(value) is not None:
        raise PlanError(
            f"{OPTION}: {compared} are compared in a closed loop, in which no request is due. "
            f"Give a number with -e {OPTION}=, or leave it out."
        )
