"""Action plugin lab.bench.check_host; loadlab/hosts/probe.py, planning/client_programs.py and
tuning/sizing.py do the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import probe
from loadlab.hosts.probe import Demands, HostProbe, PythonStack
from loadlab.hosts.qdisc import NetworkProfile
from loadlab.plan import client_programs
from loadlab.plan.modes.experiment_types import items
from loadlab.plan.plan_document import Plan
from loadlab.report.words import generators_words
from loadlab.run.errors import LabError
from loadlab.tuning import sizing
from loadlab.tuning.profiles import TuningProfile
from loadlab.tuning.sizing import PooledStack


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        host, plan = decode(args["host"], HostProbe), decode(args["plan"], Plan)
        is_server, fetched_sources = args["is_server"], args["fetched_sources"]
        needs = plan.needs and (plan.needs.server if is_server else plan.needs.client)
        demands = Demands(
            name=args["name"],
            test_address=args["test_address"],
            machine_ids=args["machine_ids"],
            stacks=decode(list(plan.stacks.values()) if is_server else [], list[PythonStack]),
            networks=decode(plan.networks, dict[str, NetworkProfile]),
            disk_bytes=needs.disk_bytes if needs else 0,
            memory_bytes=needs.memory_bytes if needs else 0,
            trace=plan.trace and is_server,
            fetched_sources=fetched_sources,
        )
        reasons = [problem.message for problem in probe.problems(host, demands)]
        if is_server:
            reasons += sizing.pools_refusals(
                decode(plan.stacks, dict[str, PooledStack]),
                decode(plan.tunings, dict[str, TuningProfile]),
                [(item.stack, item.cell.tuning) for item in items(plan.experiments)],
                host,
                sizing.largest_pool(Path(args["root"])),
            )
        else:
            missing = client_programs.obstacles(
                host, plan.generators, args["binaries"], args["controller"]
            )
            reasons += [generators_words.refusal(why) for why in missing]
        if reasons:
            raise LabError(f"{args['name']}: {' '.join(reasons)} Nothing was changed on the hosts.")
        return {}
