"""Action plugin lab.bench.begin_repetition: works out a measurement and writes its cell.json.

The record is written first, so that an interrupted measurement is recognized by it. The arguments
are the variables of the role load_run; loadlab/generators/load/load_run.py does the work.
"""

from pathlib import Path

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.generators.load.load_run import LoadRunInput, load_run
from loadlab.run import documents
from loadlab.run.run_dir import RepetitionDir


class ActionModule(ControllerAction[LoadRunInput]):
    def work(self, args: LoadRunInput) -> dict[str, object]:
        planned = load_run(args)
        for path, record in {args.dir: planned.record, **planned.beside}.items():
            folder = RepetitionDir(Path(path))
            folder.path.mkdir(parents=True, exist_ok=True)
            documents.write(folder.cell, documents.encode(record))
        return {"changed": True, **msgspec.structs.asdict(planned)}
