"""Action plugin lab.bench.check_host: refuses a host that does not meet the needs of a run.

A sentence for each problem, with value and remedy, by loadlab/hosts/probe.py,
plan/client_programs.py and tuning/sizing.py.
"""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert
from msgspec import Struct

from loadlab.hosts import probe
from loadlab.hosts.probe import Demands, HostProbe, PythonStack
from loadlab.hosts.qdisc import NetworkProfile
from loadlab.plan import client_programs
from loadlab.plan.plan_document import Plan, items
from loadlab.report.words import generators_words
from loadlab.run.errors import LabError
from loadlab.tuning import sizing
from loadlab.tuning.profiles import TuningProfile
from loadlab.tuning.sizing import PooledStack


class Arguments(Struct, kw_only=True, frozen=True):
    """A host, and the run that it is for."""

    host: HostProbe  #: From the filter lab.bench.parse_probe.
    name: str  #: In the inventory.
    machine_ids: dict[str, str]  #: Host -> its machine id, with the id of its boot.
    test_address: str = ""  #: IPv4 address on the link that carries the load.
    is_server: bool  #: Whether it runs the stacks; else it runs the generators.
    plan: Plan
    binaries: dict[str, str]  #: Main variable -> path of the user's own executable, "" for none.
    controller: Path  #: An executable of the controller's architecture.
    #: Of a host without internet each source that the controller fetches from, as name:port.
    fetched_sources: list[str] | None = None
    root: Path  #: Top folder of the lab.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        host, plan, is_server = args.host, args.plan, args.is_server
        needs = plan.needs and (plan.needs.server if is_server else plan.needs.client)
        demands = Demands(
            name=args.name,
            test_address=args.test_address,
            machine_ids=args.machine_ids,
            stacks=convert(list(plan.stacks.values()) if is_server else [], list[PythonStack]),
            networks=convert(plan.networks, dict[str, NetworkProfile]),
            disk_bytes=needs.disk_bytes if needs else 0,
            memory_bytes=needs.memory_bytes if needs else 0,
            trace=plan.trace and is_server,
            fetched_sources=args.fetched_sources,
        )
        reasons = [problem.message for problem in probe.problems(host, demands)]
        if is_server:
            reasons += sizing.pools_refusals(
                convert(plan.stacks, dict[str, PooledStack]),
                convert(plan.tunings, dict[str, TuningProfile]),
                [(item.stack, item.cell.tuning) for item in items(plan.experiments)],
                host,
                sizing.largest_pool(args.root),
                plan.together,
            )
        else:
            missing = client_programs.obstacles(
                host, plan.generators, args.binaries, str(args.controller)
            )
            reasons += [generators_words.refusal(reason) for reason in missing]
        if reasons:
            raise LabError(f"{args.name}: {' '.join(reasons)} Nothing was changed on the hosts.")
        return {}
