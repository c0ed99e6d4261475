"""Each cell over the runs: what changed around it, and its steps."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.history import past_runs, series, words
from loadlab.history.past_runs import PastRun
from loadlab.history.series import Series, Step
from loadlab.model import CellSummary, GeneratorProgram, NoiseFloor, Summary
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.history import pasts


def one(results: Path, endpoint: str = "index") -> Series:
    """The series of the cell at /index."""
    found = series.build(past_runs.read(results)).cells
    (chosen,) = (cell for cell in found if cell.cell.endpoint == endpoint)
    return chosen


def write(results: Path, factors: list[float], **changes: Any) -> None:
    first = len(list(results.iterdir()))
    for number, factor in enumerate(factors, start=first):
        pasts.write(results, f"run-{number:03}", number, factor, **changes)


def test_a_step_is_found_with_the_third_run_of_a_new_level(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.02, 1.01, 1.3, 1.32])
    assert one(tmp_path).steps == []
    write(tmp_path, [1.31, 1.3, 1.32])
    (step,) = one(tmp_path).steps
    assert (step.at, step.since, step.base) == (5, 3, [0, 1, 2])
    assert {row.metric for row in step.rows} == {"p50", "p99"}
    assert words.sentence(step).startswith("slower than the 3 runs before: p50 +30 % (")


def test_faster_runs_are_a_step_too_and_begin_a_level(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.01, 1.02, 0.7, 0.71, 0.72, 1.0, 1.01, 1.02])
    first, second = one(tmp_path).steps
    assert [words.kind(step) for step in (first, second)] == ["faster", "slower"]
    assert second.base == [3, 4, 5]


@pytest.mark.parametrize(
    "factors",
    [
        [1.0, 1.02, 1.01, 1.5],  # one run tells nothing
        [1.0, 1.02, 1.01, 1.5, 1.0, 1.02, 1.01],  # nor does an outlier
        [1.0, 1.001, 1.002, 1.03, 1.031, 1.032],  # within the margin
        [1.0, 1.3, 1.31, 1.32, 1.3],  # nothing to compare the new level with
    ],
)
def test_no_step_without_a_lasting_difference(tmp_path: Path, factors: list[float]) -> None:
    write(tmp_path, factors)
    assert one(tmp_path).steps == []


def test_a_level_that_was_compared_often_needs_more_to_be_left(tmp_path: Path) -> None:
    newest = [1.06, 1.08, 1.1]
    write(tmp_path, [0.98, 1.02, 1.0, *newest])
    assert one(tmp_path).steps
    (tmp_path / "often").mkdir()
    write(tmp_path / "often", [0.98, 1.02, 1.0] * 4 + newest)
    assert one(tmp_path / "often").steps == []


def test_a_difference_within_the_noise_floor_is_no_step(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.02, 1.01, 1.3, 1.32, 1.31])
    assert one(tmp_path).steps
    for run in past_runs.read(tmp_path):
        path = RunDir(tmp_path / run.run_id).summary
        found = documents.read(path, Summary)
        cells = [blocks(cell, (1.0, 1.0, 1.0)) for cell in found.cells]
        controls = [
            replace(
                blocks(cell, (1.0, 1.1, 1.2)),
                cell_id=f"{cell.cell_id}-aa",
                purpose="aa_control",
                base=cell.cell_id,
            )
            for cell in found.cells
            if cell.purpose == "measure"
        ]
        floors = [control_of(cell) for cell in cells if cell.purpose == "measure"]
        controlled = replace(found, cells=[*cells, *controls], noise_floor=floors)
        documents.write(path, documents.encode(controlled))
    assert one(tmp_path).steps == []


def blocks(cell: CellSummary, factors: Sequence[float]) -> CellSummary:
    """Return the cell with a repetition in each block, so many times as slow."""
    slower = [pasts.slowed(cell, factor).repetitions[0] for factor in factors]
    reps = [replace(rep, repetition=at, block=at) for at, rep in enumerate(slower, start=1)]
    return replace(cell, repetitions=reps)


def control_of(cell: CellSummary) -> NoiseFloor:
    """Only its names count: the noise floor is computed again, over all runs."""
    return builders.noise_floor("p99", cell.cell_id, f"{cell.cell_id}-aa")


def test_a_change_of_the_environment_begins_a_level_and_is_named(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.02, 1.01], kernel="6.18.1")
    write(tmp_path, [1.3, 1.32, 1.31], kernel="6.18.2")
    found = one(tmp_path)
    assert found.steps == []
    assert list(found.changes) == [3]
    assert words.changes(found.changes[3]) == (
        "client: kernel 6.18.1 to 6.18.2, server: kernel 6.18.1 to 6.18.2"
    )


def test_what_does_not_concern_a_cell_changes_nothing(tmp_path: Path) -> None:
    program = GeneratorProgram(version="wrk 4.1.0", sha256="0" * 64)
    known = builders.manifest()
    hosts = {
        name: replace(host, generators={"wrk": program}) if host.role == "client" else host
        for name, host in known.hosts.items()
    }
    pins = {**known.pins, "server-gunicorn/gunicorn": "1", "server-uwsgi/uwsgi": "1"}
    write(tmp_path, [1.0], pins=pins)
    others = {"flask/flask": "3.2", "server-uwsgi/uwsgi": "2"}
    write(tmp_path, [1.0], hosts=hosts, pins={**pins, **others})
    assert one(tmp_path).changes == {}
    own = {"aiohttp/aiohttp": "9.9", "server-gunicorn/gunicorn": "2"}
    write(tmp_path, [1.0], pins={**pins, **others, **own})
    (changed,) = one(tmp_path).changes.values()
    names = [deviation.name for part in changed for deviation in part.deviations]
    assert names == [*own]


def test_the_packages_of_an_application_of_ones_own_concern_its_cells(tmp_path: Path) -> None:
    for number, version in enumerate(("3.1", "3.2")):
        path = pasts.write(tmp_path, str(number), number, pins={"../notes/flask": version})
        summary = documents.read(RunDir(path).summary, Summary)
        cells = [replace(cell, cell=replace(cell.cell, app="../notes")) for cell in summary.cells]
        documents.write(RunDir(path).summary, documents.encode(replace(summary, cells=cells)))
    (changed,) = one(tmp_path).changes.values()
    assert words.changes(changed) == "pin: ../notes/flask 3.1 to 3.2"


def test_a_cell_is_the_same_by_its_definition(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.0])
    path = RunDir(tmp_path / "run-001").summary
    found = documents.read(path, Summary)
    cells = [
        replace(cell, cell=replace(cell.cell, load=replace(cell.cell.load, connections=65)))
        for cell in found.cells
    ]
    documents.write(path, documents.encode(replace(found, cells=cells)))
    every = series.build(past_runs.read(tmp_path)).cells
    assert [len(cell.runs) for cell in every] == [1, 1, 1, 1]


def test_a_void_run_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 1.02, 1.01])
    pasts.write(tmp_path, "run-003", 3, void=True)
    write(tmp_path, [1.3, 1.32, 1.31])
    found = one(tmp_path)
    assert len(found.runs) == 7
    (step,) = found.steps
    assert (step.base, step.since, step.at) == ([0, 1, 2], 4, 6)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[PastRun]:
    """One run of each kernel, read from disk."""
    results = tmp_path_factory.mktemp("results")
    for kernel in ("6.1", "6.2"):
        pasts.write(results, kernel, 1, kernel=kernel)
    return past_runs.read(results)


def past(kind: PastRun, number: int, factor: float, void: bool) -> PastRun:
    assert kind.measured
    summary = kind.measured.summary
    cells = [pasts.voided(cell) if void else pasts.slowed(cell, factor) for cell in summary.cells]
    measured = dataclasses.replace(kind.measured, summary=replace(summary, cells=cells))
    return dataclasses.replace(kind, run_id=f"run-{number}", measured=measured)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_later_run_moves_a_step(recorded: list[PastRun], data: st.DataObject) -> None:
    levels = st.sampled_from([1.0, 1.3, 0.8])
    several = data.draw(
        st.lists(
            st.tuples(levels, st.integers(3, 6), st.integers(0, 1), st.booleans()),
            min_size=1,
            max_size=5,
        )
    )
    made: list[PastRun] = []
    for level, count, kernel, void in several:
        for _ in range(count):
            noise = data.draw(st.floats(0.98, 1.02))
            number = len(made)
            made.append(past(recorded[kernel], number, level * noise, void and number % 4 == 3))
    first = data.draw(st.integers(1, len(made)))
    assert marks(made[:first]) == [
        [step for step in steps if step.at < first] for steps in marks(made)
    ]


def marks(made: list[PastRun]) -> list[list[Step]]:
    return [cell.steps for cell in series.build(made).cells]
