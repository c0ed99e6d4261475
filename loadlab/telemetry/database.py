"""Summarise the server's database from the file of record-host.sh."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadlab.model import Database, Query, Sessions
from loadlab.run.formatting import one_line
from loadlab.telemetry.recordings import Window, json_lines, steadied, used

STATEMENTS = 5  # the statements with the longest total time
QUERY_LENGTH = 500


class Statement(msgspec.Struct, frozen=True):
    """One statement since PostgreSQL started to count: calls, and total time in ms."""

    id: str
    query: str
    calls: int
    total_ms: float


_NONE = Statement("", "", calls=0, total_ms=0)


class Counted(msgspec.Struct, frozen=True):
    """Connections in one state at one reading; ``wait``: type and event, None for none."""

    state: str
    wait: str | None
    number: int


class DatabaseReading(msgspec.Struct, frozen=True):
    """One reading of the database: a line of the recording."""

    t: float  #: Unix seconds of the server's clock.
    #: sessions, transactions: counters since the start.
    sessions: float
    transactions: float
    pid: int  #: The process of the connection that reads.
    connections: int  #: Open now.
    statements: list[Statement]
    connections_limit: int  #: That applications may open to the server.
    activity: list[Counted]  #: The open ones by state.
    #: A counter too, of the whole server; None where it is not counted.
    wal_syncs: float | None = None
    #: application_name of the sessions of each stack, of several that are up together -> their
    #: processes.
    places: dict[str, list[int]] = {}


def read(path: Path) -> list[DatabaseReading]:
    """Return the readings of a database. Raises TelemetryError for a malformed line."""
    # psql ends each table with an empty line.
    return steadied(json_lines(path, DatabaseReading), lambda reading: reading.t)


def summarise(readings: Sequence[DatabaseReading], window: Window) -> Database | None:
    """Return what the database did; None without a reading before and after the load.

    It has the STATEMENTS with the longest total time.
    """
    place = window.around([reading.t for reading in readings])
    if place is None:
        return None
    first, last, far = place
    inside = readings[first : last + 1]
    statements: list[Query] = []
    for statement in inside[-1].statements:
        # At each reading; none where it had not run yet.
        statement_readings = [
            next((own for own in reading.statements if own.id == statement.id), _NONE)
            for reading in inside
        ]
        count = round(used(statement_readings, far, lambda own: own.calls))
        total_s = used(statement_readings, far, lambda own: own.total_ms / 1000)
        if count:
            statements.append(
                Query(
                    query=one_line(statement.query, QUERY_LENGTH),
                    calls=count,
                    mean_us=total_s / count * 1e6,
                    total_s=total_s,
                )
            )
    statements.sort(key=lambda statement: (-statement.total_s, statement.query))
    return Database(
        connections_max=max(reading.connections for reading in inside),
        sessions=round(used(inside, far, lambda reading: reading.sessions)),
        transactions=round(used(inside, far, lambda reading: reading.transactions)),
        wal_syncs=None
        if any(reading.wal_syncs is None for reading in inside)
        else round(used(inside, far, lambda reading: reading.wal_syncs or 0.0)),
        # It can be changed under load.
        connections_limit=min(reading.connections_limit for reading in inside),
        activity=_activity(
            [reading for reading in inside if window.start <= reading.t <= window.end]
        ),
        statements=statements[:STATEMENTS],
    )


def _activity(inside: Sequence[DatabaseReading]) -> list[Sessions] | None:
    """Return the mean connections by state and wait; None without a reading."""
    if not inside:
        return None
    sums: Counter[tuple[str, str | None]] = Counter()
    for reading in inside:
        for sessions in reading.activity:
            sums[sessions.state, sessions.wait] += sessions.number
    return [
        Sessions(state=state, wait=wait, mean=number / len(inside))
        for (state, wait), number in sums.most_common()
    ]
