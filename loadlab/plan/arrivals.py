"""The option arrivals: read it, and refuse it where it does not fit the load."""

from __future__ import annotations

import math

import msgspec

from loadlab.generators import registry
from loadlab.model import Arrivals, Options
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain

OPTION = "arrivals"
# Requests whose due times a generator holds in memory.
REQUESTS_MAX = 20_000_000
_CONSTANT, _POISSON = "constant", "poisson"
# Word before the colon: field of Arrivals, type of its number and the limits in words.
_NUMBERED: dict[str, tuple[str, type[float | int], str]] = {
    "gamma": ("smoothness", float, "a smoothness from 0.25 to 100"),
    "bursts": ("burst", int, "a number of requests from 2 to 10000"),
}


def parse(text: str) -> Arrivals | None:
    """Return arrivals such as poisson, gamma:0.5 or bursts:20; None of constant ones.

    Raises PlanError for other words, and for a number out of range.
    """
    if text in (_CONSTANT, _POISSON):
        return Arrivals(smoothness=1) if text == _POISSON else None
    word, _, number = text.partition(":")
    if word not in _NUMBERED:
        raise PlanError(
            f"{OPTION}: '{text}' is none of {_CONSTANT}, {_POISSON}, gamma:<smoothness> and "
            f"bursts:<requests>. Give one, or leave {OPTION} out."
        )
    field, kind, limits = _NUMBERED[word]
    try:
        value = kind(number)
        # Which is not a number would be within any limits.
        if math.isnan(value):
            raise ValueError
        return msgspec.convert({field: value}, Arrivals)
    except ValueError:
        raise PlanError(
            f"{OPTION}: '{text}' has no number, or one out of range. Give {limits}, for example "
            f"-e {OPTION}={word}:{'0.5' if word == 'gamma' else '20'}."
        ) from None


def refuse(options: Options) -> None:
    """Raise PlanError for arrivals that the generator, its clients or its memory cannot keep."""
    arrivals, generator = parse(options.arrivals), registry.get(options.generator)
    if arrivals is None or generator.mode != "constant":
        return
    if OPTION not in generator.options:
        raise PlanError(
            f"{OPTION}: generator={generator.name} sends at a constant rate alone. Give -e "
            f"generator={registry.readers(OPTION)[0]}, without http2, or leave {OPTION} out."
        )
    if options.clients > 1 and arrivals.smoothness != 1:
        raise PlanError(
            f"{OPTION}: {options.clients} clients offer the load, and {arrivals} of each would not "
            f"be {arrivals} together; {_POISSON} would. Give -e {OPTION}={_POISSON}, or take "
            "`serves` from clients in the inventory."
        )
    requests = max(options.rate, default=0) * max(options.duration, options.warmup)
    if requests > REQUESTS_MAX * options.clients:
        raise PlanError(
            f"{OPTION}: {options.arrivals} of {plain(requests)} requests, and a client holds the "
            f"due times of {REQUESTS_MAX:,} at most. Give a lower rate or duration, or leave "
            f"{OPTION} out."
        )
