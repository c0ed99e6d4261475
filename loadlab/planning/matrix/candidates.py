"""The candidates of a matrix: servers, workers and threads that make sense on a number of cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadlab.core.errors import PlanError
from loadlab.core.model import Candidate, GivenOptions, Options
from loadlab.stacks import stacks
from loadlab.stacks.servers import Offered

# Threads of a worker that can have several: a few, and many for an application that waits.
FEW, MANY = 4, 16


def candidates(root: Path, chosen: Options, python: str | None, cores: int) -> list[Candidate]:
    """Return the candidates of an application on this many cores, server by server.

    Each server of the application's interface has its default stack for each worker class, as far
    as the options leave it. ``python``: the server's Python version, None where it is not known.
    Raises PlanError where nothing runs it.
    """
    found = stacks.stack(root, msgspec.to_builtins(chosen), python)
    app = found["app"]
    if app["language"] == "none":
        raise PlanError(
            f"framework: {chosen.framework} is answered by nginx itself, which has no workers to "
            "choose. Give an application."
        )
    there_are = stacks.of_application(root, app)
    own_python = found["python"] is not None
    fit = stacks.fitting(there_are, msgspec.to_builtins(chosen), app, own_python)
    rows: dict[tuple[str, str | None], Offered] = {}
    for one in fit:
        if not stacks.too_new(one, python):
            rows.setdefault((one["server"], one["worker_class"]), one)
    return [
        made
        for server in dict.fromkeys(server for server, _ in rows)
        for made in _of_server([row for (name, _), row in rows.items() if name == server], cores)
    ]


def _of_server(rows: Sequence[Offered], cores: int) -> list[Candidate]:
    """Return the candidates of one server, with its own default and the rule of 2n+1 workers."""
    first = next((row for row in rows if row["unasked"]), rows[0])
    unasked = first["unasked"] or {"workers": first["only_workers"] or 1, "threads": 1}
    own = unasked["workers"], unasked["threads"]
    rule = 2 * cores + 1, 1
    found = []
    for row in rows:
        those = {*numbers(row, cores), *([own] if row is first else [])}
        found += [
            Candidate(
                name=_name(row, *each),
                options={**_stack(row), "workers": each[0], "threads": each[1]},
                workers=each[0],
                threads=each[1],
                own_default=_name(first, *own),
                rule=_name(row, *rule) if rule in those else None,
            )
            for each in sorted(those)
        ]
    return found


def numbers(row: Offered, cores: int) -> set[tuple[int, int]]:
    """Return the (workers, threads) that make sense for a stack on this many cores.

    2n+1 workers are the rule of Gunicorn's documentation, n and n+1 what others advise.
    """
    if row["only_workers"]:
        return {(row["only_workers"], threads) for threads in (FEW, MANY)}
    alone = {(workers, 1) for workers in (1, cores, 2 * cores + 1)}
    if row["threaded"]:
        return alone | {(cores, FEW), (cores + 1, FEW), (cores, MANY)}
    return alone | {(cores + 1, 1)}


def _stack(row: Offered) -> GivenOptions:
    """Return the options that choose a stack."""
    return {key: row[key] for key in stacks.CHOICES if row[key] is not None}


def _name(row: Offered, workers: int, threads: int) -> str:
    parts = [row["server"], *([row["worker_class"].split(".")[-1]] if row["worker_class"] else [])]
    return "-".join([*parts, f"{workers}x{threads}"])
