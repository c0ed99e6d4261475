"""Give each stack of a load of several lanes its own raw files.

The load's files arrive in the repetition of its first stack: those of each lane in a folder of its
place, and the recordings of the hosts, which all share.
"""

import os

from loadlab.model import RepetitionSetup
from loadlab.run import documents
from loadlab.run.run_dir import CELL, RESULT, RepetitionDir, lane_folder


def share_out(repetition: RepetitionDir) -> None:
    """Move the files of each lane to the repetition of its stack, and link the shared ones there.

    ``repetition``: of any stack of the load; nothing happens where the load is of one stack, and
    with what was shared out before. The repetitions must have their cell.json.
    """
    lane = documents.read(repetition.cell, RepetitionSetup).lane
    if lane is None:
        return
    run, number = repetition.run_dir, repetition.number
    folders = {run.repetition(cell_id, number): place for cell_id, place in lane.cells.items()}
    first = run.repetition(lane.first, number)
    beside = [folder for folder in folders if folder != first]
    arrived = {folder: first.path / lane_folder(place) for folder, place in folders.items()}
    if any(source.is_dir() for source in arrived.values()):
        shared = [path for path in first.path.iterdir() if path.is_file()]
    else:
        # The load may have failed before any lane had files.
        shared = [first.error] if first.error.exists() else []
    for path in shared:
        for folder in beside:
            if path.name not in (CELL, RESULT) and not (folder.path / path.name).exists():
                os.link(path, folder.path / path.name)
    # Last those of the first stack, which are among the shared ones from then on.
    for folder in [*beside, first]:
        source = arrived[folder]
        for path in sorted(source.glob("*")):
            path.replace(folder.path / path.name)
        if source.is_dir():
            source.rmdir()
