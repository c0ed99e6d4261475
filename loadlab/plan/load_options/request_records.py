"""What an option of a load needs of its generator, and of the record that it keeps of a request."""

from loadlab.generators import registry
from loadlab.model import Options
from loadlab.run.errors import PlanError


def refuse_unread(options: Options, option: str, instead: str) -> None:
    """Raise PlanError where the generator does not read an option; ``instead``: what it does."""
    generator = registry.get(options.generator)
    if option not in generator.options:
        raise PlanError(
            f"{option}: generator={generator.name} {instead}. Give -e "
            f"generator={registry.readers(option)[0]}, without http2, or leave {option} out."
        )


def refuse_unrecorded(options: Options, option: str, recorded: str) -> None:
    """Raise PlanError where no record is kept; ``recorded``: what the option reads there."""
    if not options.keep_requests:
        raise PlanError(
            f"{option}: {recorded} in its record, and keep_requests=false keeps none. Leave "
            f"keep_requests or {option} out."
        )


def refuse_beyond(options: Options, option: str, amount: str, requests: float) -> None:
    """Raise PlanError where a load has more requests than the clients keep records of.

    ``amount``: the requests in words.
    """
    most = registry.get(options.generator).rows_max
    if requests > most * options.clients:
        raise PlanError(
            f"{option}: {amount}, and a client keeps the records of {most:,} at most. Give a lower "
            f"rate or duration, or leave {option} out."
        )


def requests_due(options: Options) -> float:
    """Return how many requests, or visits, are due in the longest part of the largest load."""
    return max(options.rate, default=0) * max(options.duration, options.warmup)
