"""The disk and memory that a run needs."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loadlab.generators import oha
from loadlab.plan import needs
from loadlab.plan.needs import Room
from loadlab.plan.plan_document import Needs
from loadlab.run.errors import PlanError
from tests.unit import builders

RECORDED = Path(__file__).parents[2] / "fixtures" / "oha"
MANY = {"generator": "oha", "rate": 6000, "duration": 300, "warmup": 10, "endpoint": "index"}
ROWS = 1_800_000
GIB = 2**30


def planned(**options: Any) -> Needs:
    return builders.present(builders.plan(**options).needs)


@pytest.mark.parametrize("name", ["normal", "saturated"])
def test_rows_of_a_recorded_file_are_not_larger(name: str, tmp_path: Path) -> None:
    packed = (RECORDED / f"{name}.sqlite.gz").read_bytes()
    path = tmp_path / "oha.sqlite"
    path.write_bytes(gzip.decompress(packed))
    with closing(sqlite3.connect(path)) as base:
        ((rows,),) = base.execute("SELECT count(*) FROM oha")
        ((longest,),) = base.execute("SELECT max(length(url)) FROM oha")
    # Two pages hold the tables themselves. A path may have 25 characters.
    row_bytes = (path.stat().st_size - 8192) / rows + 25 - longest
    assert 0.9 * oha.ROW_BYTES < row_bytes <= oha.ROW_BYTES


def test_needs_grow_with_the_requests_of_one_measurement() -> None:
    needed = planned(**MANY)
    assert needed.client.memory_bytes == ROWS * 360
    assert needed.client.disk_bytes == ROWS * 80 + 310 * needs.RECORDED_BYTES
    assert needed.server.disk_bytes == 310 * needs.RECORDED_BYTES
    assert needed.controller.memory_bytes == ROWS * 40
    assert needed.temporary_bytes == ROWS * (48 + 80)
    # A longer warm-up writes more rows than the measurement.
    assert planned(**{**MANY, "duration": 10, "warmup": 300}).client == needed.client


def test_more_repetitions_need_more_of_the_controller_alone() -> None:
    single, five = planned(**MANY), planned(**MANY, repetitions=5)
    assert (five.client, five.server) == (single.client, single.server)
    assert five.controller.disk_bytes > single.controller.disk_bytes


def test_metronome_needs_as_much_memory_for_a_soak_as_for_an_hour() -> None:
    many = {**MANY, "generator": "metronome"}
    needed = planned(**many)
    assert needed.client.memory_bytes == ROWS * 64
    assert needed.client.disk_bytes == ROWS * 16 + 310 * needs.RECORDED_BYTES
    assert (needed.controller.memory_bytes, needed.temporary_bytes) == (0, 0)
    soak = {"rate": 10_000, "duration": 86_400, "endpoint": "index"}
    long = planned(**soak)
    assert long.client.memory_bytes == 6_000_000 * 64
    assert long.client.disk_bytes < 2 * GIB
    room = Room(10 * GIB, GIB)
    needs.refuse_controller(long, room, room, True, 1, 3 * 10**9)
    with pytest.raises(PlanError, match="and the run needs"):
        needs.refuse_controller(planned(**soak, generator="oha"), room, room, True, 1, 3 * 10**9)
    # Without a record of each request.
    short = planned(**many, keep_requests=False)
    assert short.client.disk_bytes == 310 * (needs.RECORDED_BYTES + needs.HISTOGRAM_BYTES)


def test_a_generator_without_rows_needs_recordings_alone() -> None:
    needed = planned(generator="wrk", duration=30, warmup=10, endpoint="index")
    assert needed.client.memory_bytes == 0
    assert needed.client.disk_bytes == 40 * needs.RECORDED_BYTES
    assert needed.temporary_bytes == 0


def refused(needed: Needs, disk: int, memory: int, *, shared: bool = True, hosts: int = 0) -> str:
    room = Room(disk, memory)
    with pytest.raises(PlanError) as refusal:
        needs.refuse_controller(needed, room, Room(10**6, memory), shared, hosts, 3 * 10**9)
    return str(refusal.value)


def test_a_controller_without_room_is_refused_with_value_limit_and_remedy() -> None:
    needed = planned(**MANY)
    here = needed.controller.disk_bytes + needed.temporary_bytes
    enough = Room(here, needed.controller.memory_bytes)
    needs.refuse_controller(needed, enough, enough, True, 0, 3 * 10**9)
    assert refused(needed, here - 1, GIB).startswith("The disk of results/ on this machine has 3")
    refusal = refused(needed, 10 * GIB, 10**7)
    assert refusal == (
        "This machine has 9.54 MiB of available memory, and the run needs 68.7 MiB. Free some, or "
        "give a lower -e rate= or a shorter -e duration=."
    )
    refusal = refused(needed, 10 * GIB, GIB, shared=False)
    assert refusal.startswith("The disk of temporary files on this machine has 977 KiB free, and ")


def test_local_hosts_share_the_controller() -> None:
    needed = planned(**MANY)
    assert "and the run needs 3.2" in refused(needed, GIB, GIB, hosts=1)
    assert "687 MiB. Free some" in refused(needed, 10 * GIB, 500_000_000, hosts=1)
