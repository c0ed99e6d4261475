"""A host that dropped out of a run is asked whether it answers, before it is called lost."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.unit import plays

ROOT = Path(__file__).parents[2]


def test_only_a_host_that_does_not_answer_is_lost(tmp_path: Path) -> None:
    here = {"ansible_connection": "local"}
    # Nobody listens there.
    gone = {"ansible_host": "127.0.0.1", "ansible_port": 9}
    lab = {"hosts": {"client": here, "server": gone, "client2": here}}
    inventory = {"all": {"children": {"lab": lab}}}
    role = ROOT / "roles" / "measure"
    ask = {"ansible.builtin.raw": "test {{ inventory_hostname }} != client2"}
    look = {"ansible.builtin.include_tasks": str(role / "tasks" / "check_hosts.yml")}
    known = yaml.safe_load((role / "vars" / "main.yml").read_text())
    variables = {**known, "measure_plan": {"resume_args": "-e run_id=a-run"}}
    play = {"hosts": "lab", "vars": variables, "tasks": [ask, look]}
    done = plays.run(tmp_path, inventory, play, ANSIBLE_SSH_RETRIES="0")
    assert (
        "client: A task failed on client2, which answers; the reason stands above. server: lost in "
        "the middle of the run, the reason stands above. What was measured is kept. When the host "
        "answers again, go on with ansible-playbook lab.yml -e run_id=a-run "
    ) in " ".join(done.stdout.split())
