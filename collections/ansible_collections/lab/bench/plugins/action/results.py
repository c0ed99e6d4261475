"""Action plugin lab.bench.results: derives the documents of a run, but for its report.

result.json, summary.json with its exports, and manifest.json. The action's result, in words:
``table`` of the results, ``unmeasured``: a study's cells without a valid repetition, ``resume``:
the command that resumes the run, ``void``: why no measurement is valid, "" where one is, and
``abandoned``: cells that failed, with the last error. loadlab/kinds/derive_run.py does the work.
"""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.history import reproduction
from loadlab.kinds import all_kinds, derive_run, run_end
from loadlab.kinds.study import words as study_words
from loadlab.report.words import disturbances, repetitions_words
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.run_dir import RunDir


class Arguments(Struct, kw_only=True, frozen=True):
    """A run, and what the manifest says of its machines."""

    run_dir: Path  #: The run's folder.
    root: Path  #: Top folder of the lab.
    hosts: dict[str, object]  #: Inventory name -> description.
    #: Host -> its cloud instance, as HostInstance in loadlab/hosts/ec2_price.py has it; empty for a
    #: host that is none.
    instances: dict[str, object] = {}
    logs: dict[str, str]  #: Host -> log of its services.
    controller: dict[str, str]  #: Its description.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        run_dir = args.run_dir
        run = RunDir(run_dir)
        run.logs.mkdir(exist_ok=True)
        try:
            for host, log in args.logs.items():
                documents.write(run.log(host), log.encode(errors="backslashreplace"))
            derive_run.results(run_dir)
            instances = {name: instance for name, instance in args.instances.items() if instance}
            derive_run.describe(run_dir, args.root, args.hosts, args.controller, instances)
            table = run_end.derived(run_dir, derive_run.summary(run_dir))
            reproduction.write(run_dir)
        except ValueError as problem:
            raise LabError(f"{problem}. The raw files are kept in {run_dir}.") from None
        unmeasured = [study_words.unmeasured(cell) for cell in derive_run.unmeasured(run_dir)]
        abandoned = [
            repetitions_words.abandoned(*cell) for cell in derive_run.abandoned(run_dir).items()
        ]
        kind = all_kinds.of_run(run_dir)
        void = derive_run.void_reasons(run_dir)
        return {
            "changed": True,
            "table": table,
            "unmeasured": unmeasured,
            "resume": kind.resume_command(run_dir),
            "void": disturbances.nothing_valid(void, kind.more_repetitions(run_dir)),
            "abandoned": kind.unmeasured(run, abandoned, unmeasured),
        }
