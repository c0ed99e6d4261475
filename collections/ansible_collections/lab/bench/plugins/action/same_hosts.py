"""Action plugin lab.bench.same_hosts: resumes a run only on the hosts that it was started on.

Records the hosts in plan.json. For an existing run the new plan replaces the old one and the
resuming command is added; its start and earlier comparisons stay, and a plan without cells changes
nothing. A run that has measured nothing yet may resume on any hosts. loadlab/hosts/identity.py and
plan/plan_document.py do the work.
"""

from pathlib import Path

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from loadlab.hosts import identity
from loadlab.hosts.identity import Identity, RunHost
from loadlab.hosts.pairs import Pair
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Run
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class Instance(Struct, frozen=True):
    """The cloud instance that a host is; both "" where it is none."""

    instance_type: str = field(name="type", default="")
    image: str = ""


class Arguments(Struct, kw_only=True, frozen=True):
    """A run and the present hosts."""

    run_dir: Path  #: The run's folder.
    hosts: dict[str, Identity]  #: By name, from the filter lab.bench.host_identity.
    instances: dict[str, Instance] = {}  #: By name of the host.
    pairs: list[Pair]  #: From the filter lab.bench.pairs.
    now: Run | None = None  #: What plan.json would be for a new run.
    new: bool = False  #: Whether the run is new; then only the plan of plan.json is written again.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        run = RunDir(args.run_dir)
        if not run.plan.exists():
            # In check mode a new run has no plan.json.
            return {}
        earlier = plan_document.read(run.path)
        present = {
            name: RunHost(
                pair=pair.number,
                **{**asdict(args.hosts[name]), **asdict(args.instances.get(name, Instance()))},
            )
            for pair in args.pairs
            for name in pair.hosts
        }
        identities = identity.check_same_hosts(
            run.run_id,
            convert(earlier.hosts or {}, dict[str, RunHost]),
            present,
            earlier.inventory_args,
            measured=bool(run.repetitions()),
        )
        hosts = msgspec.to_builtins(identities)
        content = replace(earlier, hosts=hosts)
        now = args.now
        if now is not None and args.new:
            # Its generator may have been settled since.
            content = replace(content, plan=now.plan)
        elif now is not None and now.plan.experiments:
            content = plan_document.resumed(content, now)
        if content != earlier and not self._task.check_mode:
            documents.write(run.plan, documents.encode(content))
        # Recording that the run was resumed does not count as a change.
        return {"changed": hosts != earlier.hosts}
