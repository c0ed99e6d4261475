"""The options arrivals and ramp: read them, and refuse them where they do not fit the load."""

import math
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Arrivals, GivenOptions, Options
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain

OPTION, RAMP = "arrivals", "ramp"
# Requests whose due times a generator holds in memory.
REQUESTS_MAX = 20_000_000
RAMP_MIN, RAMP_MAX, RATE_MAX = 2, 1_000, 1_000_000
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


def rates(text: str) -> list[float]:
    """Return the rates of a ramp, such as 100..2000, requests/s. Raises PlanError for others."""
    try:
        numbers = [float(rate) for rate in text.split("..")]
    except ValueError:
        numbers = []
    if not (
        RAMP_MIN <= len(numbers) <= RAMP_MAX and all(0 <= rate <= RATE_MAX for rate in numbers)
    ):
        raise PlanError(
            f"{RAMP}: '{text}' is no ramp. Give {RAMP_MIN} to {RAMP_MAX:,} rates from 0 to "
            f"{RATE_MAX:,} requests per second, for example -e {RAMP}=100..2000."
        )
    return numbers


def mean(ramp: object, values: GivenOptions) -> float:
    """Return the mean rate of a ramp. Raises PlanError where ``values`` have another."""
    points = rates(str(ramp))
    mean_rate = sum((before + after) / 2 for before, after in pairwise(points)) / (len(points) - 1)
    # A run that is repeated has the mean as its rate.
    if values.get("rate") not in (None, [mean_rate]):
        raise PlanError(f"rate: the {RAMP} {ramp} has a mean rate. Leave rate or {RAMP} out.")
    return mean_rate


def asked(options: Options) -> Arrivals | None:
    """Return how the requests of a load come; None where evenly at one rate."""
    arrivals = parse(options.arrivals)
    if options.ramp is None:
        return arrivals
    ramp = rates(options.ramp)
    return replace(arrivals, ramp=ramp) if arrivals else Arrivals(ramp=ramp)


def refuse(options: Options) -> None:
    """Raise PlanError for arrivals that the generator, its clients or its memory cannot keep."""
    arrivals, generator = asked(options), registry.get(options.generator)
    if arrivals is None or generator.mode != "constant":
        return
    option = RAMP if options.ramp else OPTION
    if options.ramp and options.slo:
        raise PlanError(
            f"{RAMP}: an slo searches one rate, and a ramp has many. Leave one of the two out."
        )
    if OPTION not in generator.options:
        raise PlanError(
            f"{option}: generator={generator.name} sends at a constant rate alone. Give -e "
            f"generator={registry.readers(OPTION)[0]}, without http2, or leave {option} out."
        )
    if options.clients > 1 and (arrivals.burst or arrivals.smoothness not in (None, 1)):
        raise PlanError(
            f"{OPTION}: {options.clients} clients offer the load, and {options.arrivals} of each "
            f"would not be {options.arrivals} together; {_POISSON} would. Give "
            f"-e {OPTION}={_POISSON}, or take `serves` from clients in the inventory."
        )
    requests = max(options.rate, default=0) * max(options.duration, options.warmup)
    if requests > REQUESTS_MAX * options.clients:
        raise PlanError(
            f"{option}: {arrivals} of {plain(requests)} requests, and a client holds the "
            f"due times of {REQUESTS_MAX:,} at most. Give a lower rate or duration, or leave "
            f"{option} out."
        )
