"""Action plugin lab.bench.fail_repetition: keeps a failed measurement as a record."""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.model import RepetitionSetup
from loadlab.run import documents, lock
from loadlab.run.run_dir import RepetitionDir


class Arguments(Struct, kw_only=True, frozen=True):
    """A measurement that failed."""

    dest: Path  #: Folder of the repetition on the controller, created if it is missing.
    record: dict[str, object]  #: cell.json, if there is none yet.
    error: str  #: The message, added to those of before.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        dest = RepetitionDir(args.dest)
        dest.path.mkdir(parents=True, exist_ok=True)
        if not dest.cell.exists():
            setup = documents.decode(args.record, RepetitionSetup, dest.cell.name)
            documents.write(dest.cell, documents.encode(setup))
        # Ansible decodes bytes that are not text as surrogates, which cannot be encoded again.
        error = args.error.strip().encode(errors="backslashreplace")
        # Two hosts may fail at once, or one host twice. The first error is the cause, so keep the
        # order.
        with lock.alone(dest.path):
            before = [dest.error.read_bytes().strip()] if dest.error.exists() else []
            documents.write(dest.error, b"; ".join([*before, error]) + b"\n")
        return {"changed": True}
