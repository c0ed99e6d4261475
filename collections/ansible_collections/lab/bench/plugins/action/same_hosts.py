"""Action plugin lab.bench.same_hosts: resumes a run only on the hosts that it was started on.

Records the hosts in plan.json. For an existing run the new plan replaces the old one and the
resuming command is added; its start and earlier comparisons stay, and a plan without cells changes
nothing. A run that has measured nothing yet may resume on any hosts. loadlab/hosts/identity.py and
planning/resume.py do the work.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert
from msgspec import Struct
from msgspec.structs import replace

from loadlab.hosts import identity
from loadlab.hosts.identity import RunHost
from loadlab.hosts.pairs import Pair
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Run
from loadlab.run import documents
from loadlab.run.run_dir import RunDir

# Field of a run's host -> key of its cloud instance.
_OF_INSTANCE = {"instance_type": "type", "image": "image"}


def _instance(instance: dict[str, object]) -> dict[str, str]:
    """Return the instance type and image of a host; nothing where it is no instance."""
    return {name: str(instance[key]) for name, key in _OF_INSTANCE.items()} if instance else {}


class Arguments(Struct, kw_only=True, frozen=True):
    """A run and the present hosts."""

    run_dir: Path  #: The run's folder.
    hosts: dict[
        str, dict[str, object]
    ]  #: Name -> identity, from the filter lab.bench.host_identity.
    #: Host -> its cloud instance with type and image, empty for a host that is none.
    instances: dict[str, dict[str, object]] = {}
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
            name: {
                "pair": pair.number,
                **args.hosts[name],
                **_instance(args.instances.get(name, {})),
            }
            for pair in args.pairs
            for name in pair.hosts
        }
        identities = identity.check_same_hosts(
            run.run_id,
            convert(earlier.hosts or {}, dict[str, RunHost]),
            convert(present, dict[str, RunHost]),
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
