"""Action plugin lab.bench.interpreter: downloads a Python to .cache/, where it is not there yet.

Also in check mode, as nothing but this cache changes. ``folder`` of the result: its folder on the
controller, named after the exact version. loadlab/stacks/interpreters.py does the work.
"""

import platform
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.stacks import interpreters


class Arguments(Struct, kw_only=True, frozen=True):
    """A Python."""

    root: Path  #: Top folder of the lab.
    python: str  #: Its version, such as 3.14 or 3.14t.
    #: Of the host that it is for, as uname -m prints it; "" for the controller's.
    machine: str = ""


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        machine = args.machine or platform.machine()
        folder, changed = interpreters.obtain(args.root, args.python, machine)
        return {"changed": changed, "folder": str(folder)}
