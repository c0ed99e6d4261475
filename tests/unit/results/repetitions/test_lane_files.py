"""The files of a load of several lanes, as they arrive and as each stack has them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.model import Lane, RepetitionSetup
from loadlab.results.repetitions import lane_files
from loadlab.run import documents
from loadlab.run.run_dir import ERROR, RepetitionDir, RunDir, lane_folder
from tests.unit import builders

PLACES = {"base": 2, "control": 1, "head": 3}


@pytest.fixture
def repetitions(tmp_path: Path) -> dict[str, RepetitionDir]:
    run = RunDir(tmp_path)
    folders = {name: run.repetition(name, 4) for name in PLACES}
    result = builders.result()
    for name, folder in folders.items():
        folder.path.mkdir(parents=True)
        setup = RepetitionSetup(
            cell_id=name,
            repetition=4,
            purpose="measure",
            cell=replace(result.cell, variant=name),
            server="server",
            lane=Lane(place=PLACES[name], first="head", cells=PLACES),
        )
        documents.write(folder.cell, documents.encode(setup))
    return folders


def files(folder: RepetitionDir) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.path.iterdir() if path != folder.cell}


@pytest.mark.parametrize("first", PLACES)
def test_each_stack_has_its_own_files_and_the_shared_ones(
    repetitions: dict[str, RepetitionDir], first: str
) -> None:
    arrived = repetitions["head"].path
    for place in PLACES.values():
        (arrived / lane_folder(place)).mkdir()
        (arrived / lane_folder(place) / "metronome.json").write_text(str(place))
    (arrived / "cores.txt.gz").write_text("of all")
    for name in (first, *PLACES):
        lane_files.share_out(repetitions[name])
    for name, folder in repetitions.items():
        assert files(folder) == {"metronome.json": str(PLACES[name]), "cores.txt.gz": "of all"}
        assert RepetitionDir(folder.path).cell.exists()


def test_what_the_first_stack_gets_later_is_its_own(repetitions: dict[str, RepetitionDir]) -> None:
    (repetitions["head"].path / lane_folder(2)).mkdir()
    lane_files.share_out(repetitions["head"])
    (repetitions["head"].path / "metronome.requests.gz").write_text("packed")
    lane_files.share_out(repetitions["head"])
    assert files(repetitions["base"]) == {}


def test_a_load_that_failed_failed_for_all(repetitions: dict[str, RepetitionDir]) -> None:
    repetitions["head"].error.write_text("no answer")
    lane_files.share_out(repetitions["control"])
    assert all(files(folder) == {ERROR: "no answer"} for folder in repetitions.values())
