"""Action plugin lab.bench.lock_packages: locks the packages of an application, with its servers.

The file below .cache/ names each version and its hashes. Also in check mode, as nothing but this
cache changes. loadlab/stacks/requirements.py does the work.
"""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.stacks import requirements


class Arguments(Struct, kw_only=True, frozen=True):
    """An application from outside the tree."""

    root: Path  #: Top folder of the lab.
    source: str  #: The application's folder, absolute or below ``root``.
    requirements: str  #: The file in it that lists its packages, such as requirements.txt.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        folder = args.root / args.source
        return {"changed": requirements.make_lock(args.root, folder, args.requirements)}
