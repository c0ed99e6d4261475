"""The option replay: read its log, and refuse it where a load cannot have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from loadlab.generators import access_log
from loadlab.generators.access_log import Log, Survey
from loadlab.model import GivenOptions, Options
from loadlab.plan.load_options import request_records
from loadlab.run import catalog
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain
from loadlab.stacks.application import App, is_own
from loadlab.stacks.contract import Contracts

OPTION, SPEED, QUERY = "replay", "speed", "replay_query"
SPEED_MAX = 1_000
DURATION_MAX_S, RATE_MIN, RATE_MAX = 86_400, 0.1, 1_000_000


def refuse_beside(values: GivenOptions) -> None:
    """Raise PlanError for an option of a log where there is no log."""
    for name in (SPEED, QUERY) if not values.get(OPTION) else ():
        if str(values.get(name) or 1).lower() not in ("1", "1.0", "false", "no"):
            raise PlanError(
                f"{name}: '{values[name]}' is of a log, and there is none. Give one with -e "
                f"{OPTION}=<log>, or leave {name} out."
            )


def refuse(options: Options) -> None:
    """Raise PlanError for a replay that the generator or its records cannot keep."""
    if options.replay is None:
        return
    request_records.refuse_unread(options, OPTION, "follows no log")
    request_records.refuse_unrecorded(options, OPTION, "the time and the kind of a request are")
    if options.clients > 1:
        raise PlanError(
            f"{OPTION}: {options.clients} clients offer the load, and each would send the whole "
            f"log. Take `serves` from clients in the inventory, or leave {OPTION} out."
        )


def log_of(
    root: Path, path: str, contracts: Contracts, own: bool, speed: float, query: bool
) -> Log:
    """Return the log of a path, which may be relative to the lab."""
    log = catalog.path_of(root, OPTION, path)
    return Log(log, access_log.endpoints_of(contracts), own, speed, query)


def read(root: Path, options: Options, contracts: Contracts, app: App) -> Survey:
    """Return what the log has. ``contracts``: of the application's endpoints and of others.

    Raises PlanError where it cannot be replayed.
    """
    named = {name: contracts[name] for name in app.endpoints}
    log = log_of(
        root, options.replay or "", named, is_own(app), options.speed, options.replay_query
    )
    # A stage plans twice, with and without cross-checks.
    changed = log.path.stat().st_mtime_ns if log.path.is_file() else 0
    return _survey(log, changed)


@lru_cache(maxsize=1)
def _survey(log: Log, changed: int) -> Survey:
    return access_log.survey(log)


def with_times(options: Options, log: Survey, given_options: GivenOptions) -> Options:
    """Return the options with the rate and duration of a log.

    ``given_options``: of the user, or of a study's cell. Raises PlanError where there is no time
    for the log, where a rate is given that it does not have, and where a second of it has more than
    can be sent.
    """
    assert log.replay is not None
    duration_option, fits = given_options.get("duration"), log.span_s * options.speed
    limit = options.duration if duration_option not in (None, "") else DURATION_MAX_S
    if log.span_s > limit:
        speed = plain(min(float(f"{fits / limit * 1.05:.2g}"), SPEED_MAX))
        faster = f"-e {SPEED}={speed} or more"
        if fits > limit * SPEED_MAX:
            faster = f"-e {SPEED}={SPEED_MAX} -e duration={math.ceil(fits / SPEED_MAX)}"
        raise PlanError(
            f"{OPTION}: the log lasts {plain(log.span_s)} s at speed {plain(options.speed)}, and "
            f"duration allows {plain(limit)} s. Give {faster}, or a part of the log."
        )
    if log.replay.busiest > RATE_MAX:
        raise PlanError(
            f"{OPTION}: at speed {plain(options.speed)} a second of the log has "
            f"{log.replay.busiest:,.0f} requests, and {RATE_MAX:,} per second is the limit. Give "
            f"a lower -e {SPEED}=."
        )
    duration = max(math.ceil(round(log.span_s * 1000, 6)) / 1000, 1.0)
    rate = log.replay.requests / duration
    if rate < RATE_MIN:
        raise PlanError(
            f"{OPTION}: at speed {plain(options.speed)} the log has {rate:.2g} requests per "
            f"second, and {RATE_MIN} is the least. Give a higher -e {SPEED}=."
        )
    if given_options.get("rate") not in (None, "", [rate]):
        raise PlanError(f"rate: the log of {OPTION} has its own. Leave rate or {OPTION} out.")
    return replace(options, rate=[rate], duration=duration, warmup=min(options.warmup, duration))


def endpoint(log: Survey, names: Sequence[str]) -> str:
    """Return the endpoint of a cell: the endpoints that the log names, with their requests. Where
    it names fewer than two, the first of ``names``, which is verified before the load."""
    if len(log.endpoints) < 2:
        return names[0]
    return ",".join(f"{name}:{count}" for name, count in log.endpoints.items())
