"""The action lab.bench.same_hosts, with plan.json as the stages before it leave it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.action import same_hosts

from loadlab.hosts import identity, pairs
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Plan, Run
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.plan.test_client_programs import client


def same(run_dir: Path, now: Plan, *, new: bool) -> Run:
    """Return plan.json after the action, with these plans."""
    begun = plans.read(run_dir)
    host = msgspec.to_builtins(identity.identity(client()))
    action: Any = same_hosts.ActionModule.__new__(same_hosts.ActionModule)
    action._task = SimpleNamespace(check_mode=False)
    action.act(
        {
            "run_dir": str(run_dir),
            "hosts": {"server": host, "client": host},
            "pairs": msgspec.to_builtins(pairs.of_inventory(["server"], ["client"], [""])),
            "now": msgspec.to_builtins(msgspec.structs.replace(begun, plan=now)),
            "new": new,
            "instances": {},
        }
    )
    return plans.read(run_dir)


def test_a_new_run_keeps_the_plan_that_its_hosts_settled(tmp_path: Path) -> None:
    found = builders.plan()
    settled = msgspec.structs.replace(found, load_seconds=found.load_seconds + 1)
    run_dir = tmp_path / settled.run_id
    builders.write_plan(run_dir, found)
    written = same(run_dir, settled, new=True)
    assert (written.plan, written.resumed) == (settled, None)
    assert set(written.hosts or {}) == {"server", "client"}
    assert RunDir(run_dir).plan.exists()
    # Resumed, it keeps its start.
    assert len(same(run_dir, settled, new=False).resumed or []) == 1
