from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from loadlab.model import Database
from loadlab.run import documents, run_dir
from loadlab.telemetry import database
from loadlab.telemetry.database import DatabaseReading
from loadlab.telemetry.recordings import Window
from tests.unit import builders

POOL = Path(__file__).parents[3] / "tests" / "fixtures" / "server" / "pool"
STARTED = documents.load(POOL / run_dir.RUN)["started"]
LOAD = Window(STARTED, STARTED + 5, warmed=True)


def summarise(readings: Sequence[DatabaseReading]) -> Database:
    return builders.present(database.summarise(readings, LOAD))


def test_flushes_of_the_log_are_counted_over_the_load_alone() -> None:
    """A recording of PostgreSQL 17 at 20 flushes a second; 18 does not count them there."""
    asked = database.read(POOL / run_dir.DATABASE)
    counted = [msgspec.structs.replace(one, wal_syncs=20 * one.t) for one in asked]
    with_flushes = summarise(counted)
    last = min(one.t for one in asked if one.t >= LOAD.end)
    assert with_flushes.wal_syncs == pytest.approx(20 * (last - LOAD.start), abs=1)
    assert summarise(asked).wal_syncs is None


def test_connections_of_the_database_are_counted_by_what_they_wait_for() -> None:
    """Half of the readings of the load see one of three connections wait for a lock."""
    asked = database.read(POOL / run_dir.DATABASE)
    busy = database.Counted("active", None, 2)
    waiting = database.Counted("active", "Lock:tuple", 1)
    seen = [
        msgspec.structs.replace(
            one, connections_limit=97, activity=[busy, waiting] if place % 2 else [busy]
        )
        for place, one in enumerate(asked)
    ]
    inside = [one for one in seen if LOAD.start <= one.t <= LOAD.end]
    found_here = summarise(seen)
    assert found_here.connections_limit == 97
    lowered = msgspec.structs.replace(inside[0], connections_limit=2)
    under_load = [lowered if one is inside[0] else one for one in seen]
    assert summarise(under_load).connections_limit == 2
    means = {(one.state, one.wait): one.mean for one in builders.present(found_here.activity)}
    locked = sum(len(one.activity) == 2 for one in inside) / len(inside)
    assert means == {("active", None): 2, ("active", "Lock:tuple"): pytest.approx(locked)}
    assert summarise([one for one in seen if one not in inside]).activity is None
