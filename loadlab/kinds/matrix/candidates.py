"""The candidates of a matrix: servers, workers and threads that make sense on a number of cores."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import DIRECT, Candidate, GivenOptions, Options
from loadlab.run.errors import PlanError
from loadlab.stacks import stacks
from loadlab.stacks.servers import Offered, Unasked
from loadlab.tuning import sizing
from loadlab.tuning.profiles import tuning_profile
from loadlab.tuning.sizing import Pool, PooledStack

# Threads of a worker that can have several: a few, and many for an application that waits.
FEW, MANY = 4, 16
# The option on the reverse proxy's connections.
_OF_PROXY = "upstream_keepalive"


def candidates(root: Path, chosen: Options, python: str | None, cores: int) -> list[Candidate]:
    """Return the candidates of an application on this many cores, server by server.

    Each server of the application's interface has its default stack for each worker class, as far
    as the options leave it. ``python``: the server's Python version, None where it is not known.
    Raises PlanError where nothing runs it.
    """
    stack = stacks.stack(root, chosen, python)
    app = stack.app
    if app.language == "none":
        raise PlanError(
            f"framework: {chosen.framework} is answered by nginx itself, which has no workers to "
            "choose. Give an application."
        )
    there_are = stacks.of_application(root, app)
    own_python = stack.python is not None
    fit = stacks.fitting(root, there_are, chosen, app, own_python)
    rows: dict[tuple[str, str | None], Offered] = {}
    # Where the options leave a server with an upper bound alone, they ask for it.
    for row in [row for row in fit if _runs(row, python, chosen.server)] or fit:
        rows.setdefault((row.server, row.worker_class), row)
    proposed = [
        candidate
        for server in dict.fromkeys(server for server, _ in rows)
        for candidate in _of_server(
            [row for (name, _), row in rows.items() if name == server],
            cores,
            direct=chosen.reverse_proxy == DIRECT,
        )
    ]
    return _admitted(root, chosen, proposed, app.pool_size, cores)


def _admitted(
    root: Path, chosen: Options, candidates: Sequence[Candidate], pool_size: int, cores: int
) -> list[Candidate]:
    """Return the candidates whose database connections PostgreSQL admits under the tuning profile.

    Raises PlanError where it admits none.
    """
    profile = tuning_profile(root, chosen.tuning[0])
    pooled = {
        candidate.name: PooledStack(
            framework=chosen.framework or "",
            app=Pool(pool_size=pool_size),
            workers=candidate.workers,
            threads=candidate.threads,
        )
        for candidate in candidates
    }
    admitted = sizing.admitted(pooled, profile, cores, sizing.largest_pool(root))
    left = {candidate.name: candidate for candidate in candidates if candidate.name in admitted}
    if not left:
        raise PlanError(
            f"tuning: with one worker alone {chosen.framework} opens more database connections "
            f"than max_connections of {chosen.tuning[0]} leaves. Choose another with "
            "-e tuning=<name>."
        )
    return [
        replace(
            candidate,
            own_default=candidate.own_default if candidate.own_default in left else None,
            rule=candidate.rule if candidate.rule in left else None,
        )
        for candidate in left.values()
    ]


def _runs(row: Offered, python: str | None, server: str | None) -> bool:
    """Return whether a stack runs on this Python; where that is not known, one with an upper bound
    only counts if its server was asked for."""
    if python is None and row.python_below is not None:
        return row.server == server
    return not stacks.too_new(row, python)


def _of_server(rows: Sequence[Offered], cores: int, *, direct: bool) -> list[Candidate]:
    """Return the candidates of one server, with its own default and the rule of 2n+1 workers."""
    first = next((row for row in rows if row.unasked), rows[0])
    unasked = first.unasked or Unasked(workers=first.only_workers or 1, threads=1)
    own = unasked.workers, unasked.threads
    rule = 2 * cores + 1, 1
    candidates = []
    for row in rows:
        sizes = {*numbers(row, cores), *([own] if row is first else [])}
        candidates += [
            Candidate(
                name=_name(row, *size),
                options={**_stack(row, direct=direct), "workers": size[0], "threads": size[1]},
                workers=size[0],
                threads=size[1],
                own_default=_name(first, *own),
                rule=_name(row, *rule) if rule in sizes else None,
            )
            for size in sorted(sizes)
        ]
    return candidates


def numbers(row: Offered, cores: int) -> set[tuple[int, int]]:
    """Return the (workers, threads) that make sense for a stack on this many cores.

    2n+1 workers are the rule of Gunicorn's documentation, n and n+1 what others advise.
    """
    if row.only_workers:
        return {(row.only_workers, threads) for threads in (FEW, MANY)}
    alone = {(workers, 1) for workers in (1, cores, 2 * cores + 1)}
    if row.threaded:
        return alone | {(cores, FEW), (cores + 1, FEW), (cores, MANY)}
    return alone | {(cores + 1, 1)}


def _stack(row: Offered, *, direct: bool) -> GivenOptions:
    """Return the options that choose a stack; ``direct``: without a reverse proxy."""
    options: GivenOptions = {
        key: choice for key in stacks.CHOICES if (choice := getattr(row, key)) is not None
    }
    return {name: value for name, value in options.items() if not direct or name != _OF_PROXY}


def _name(row: Offered, workers: int, threads: int) -> str:
    parts = [row.server, *([row.worker_class.split(".")[-1]] if row.worker_class else [])]
    return "-".join([*parts, f"{workers}x{threads}"])
