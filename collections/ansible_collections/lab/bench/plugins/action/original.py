"""Action plugin lab.bench.original: reads the run that a new one repeats, and verifies a bundle.

Its result: ``path`` of a temporary file with the run, ``made_with``: the variables of the role that
made its hosts, and ``line``: which run is repeated, and how far it was verified.
loadlab/bundle/original.py does the work.
"""

from pathlib import Path

from ansible import constants
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.bundle import original
from loadlab.report.words import reproduction_words
from loadlab.run import documents
from loadlab.run.run_dir import ORIGINAL


class Arguments(Struct, kw_only=True, frozen=True):
    """The run to repeat."""

    like: str  #: Path of a bundle or of a run's folder, or the name of a run in results/.
    root: Path  #: Top folder of the lab.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        repeated = original.read(args.like, args.root)
        # Ansible removes this folder when it ends.
        path = Path(constants.DEFAULT_LOCAL_TMP) / ORIGINAL
        documents.write(path, documents.encode(repeated))
        return {
            "path": str(path),
            "made_with": repeated.recipe.made_with,
            "line": reproduction_words.source(repeated.source),
        }
