"""A host that is lost ends the run: status 4, and its cause and remedy in the last line."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from loadlab.run.catalog import load_yaml
from tests.unit import plays, stand_ins

ROOT = Path(__file__).parents[2]
HERE = {"ansible_connection": "local"}
# Nobody listens there.
GONE = {"ansible_host": "127.0.0.1", "ansible_port": 9}
CHECK = str(ROOT / "playbooks" / "check.yml")
KNOWN: dict[str, object] = {"host_check_host": {}}
TOLD = (
    "client: unreachable over SSH (ssh: connect to host 127.0.0.1 port 9: Connection refused) at "
    "the task 'Ask'. When it answers again, the same command goes on"
)


def play(**keys: object) -> dict[str, object]:
    return {"name": "Stage", "hosts": "lab", "gather_facts": False, **keys}


def ran(
    folder: Path, lab: Mapping[str, object], *contents: dict[str, object]
) -> tuple[int, list[str]]:
    inventory = {
        "all": {"hosts": {"localhost": HERE}, "children": {"lab": {"hosts": lab, "vars": KNOWN}}}
    }
    done = plays.run(folder, inventory, *contents, ANSIBLE_SSH_RETRIES="0")
    return done.returncode, done.stdout.splitlines()


ASK = {"name": "Ask", "ansible.builtin.raw": "true"}
ON_SERVER = "inventory_hostname == 'server'"
# Where the client is lost, by itself or by a task of the server's.
LOSSES = {
    "a task of its own": play(tasks=[ASK], strategy="free"),
    "a task that another delegates to it": play(
        tasks=[
            {**ASK, "delegate_to": "{{ item }}", "loop": ["client2", "client"], "when": ON_SERVER}
        ]
    ),
    # Nothing that one stage has after another is played.
    "a task of its own in a play that waits for all": play(
        tasks=[ASK], any_errors_fatal=True, max_fail_percentage=0
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_host_ends_the_run_after_its_stage(loss: str, tmp_path: Path) -> None:
    after = play(hosts="localhost", tasks=[{"name": "Go on", "lab.bench.progress": {"msg": "on"}}])
    lab = {"server": HERE, "client": GONE, "client2": HERE}
    status, lines = ran(tmp_path, lab, LOSSES[loss], {"import_playbook": CHECK}, after)
    assert status == 4, lines
    assert lines[-1] == TOLD
    assert "  on" not in lines


def test_a_play_that_waits_for_all_ends_the_playbook() -> None:
    """Ansible alone goes on where a host is lost in a play with any_errors_fatal."""
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        for stage in load_yaml(path):
            assert ("any_errors_fatal" in stage) is ("max_fail_percentage" in stage), path.name


def test_a_measuring_loop_ends_where_a_task_failed_on_another_host(tmp_path: Path) -> None:
    role = ROOT / "roles" / "measure"
    words = "test {{ inventory_hostname }} != client2 || { echo full >&2; false; }"
    fail = {"name": "Begin", "ansible.builtin.raw": words}
    look = {"ansible.builtin.include_tasks": str(role / "tasks" / "check_hosts.yml")}
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text())
    measuring = play(vars=variables, tasks=[fail, look])
    lab = {"client": HERE, "server": HERE, "client2": HERE}
    status, lines = ran(tmp_path, lab, measuring)
    assert status == 2
    assert lines[-1] == "client2: Begin: full. Remove the cause and run the same command again."


def test_a_host_is_handed_back_where_another_is_lost(tmp_path: Path) -> None:
    """With roles that do nothing, but for the first one, which reaches the host."""
    restored: dict[str, object] = {"tuning_machine": {"rows": []}, "host_check_host": {}}
    contents: dict[str, object] = {
        "host_check/tasks/main": [ASK, {"ansible.builtin.set_fact": restored}],
        "host_check/tasks/complete": load_yaml(ROOT / "roles/host_check/tasks/complete.yml"),
        "host_check/tasks/hand_back": [],
        "host_check/tasks/remove": [],
        "network_emulation/tasks/main": [],
        "tuning/tasks/restore": [],
    }
    files = {f"{name}.yml": yaml.safe_dump(tasks) for name, tasks in contents.items()}
    stand_ins.tree(tmp_path / "roles", files)
    variables = ROOT / "roles/host_check/vars"
    (tmp_path / "roles/host_check/vars").symlink_to(variables)
    lab = {"client": GONE, "server": HERE}
    inventory = {
        "all": {
            "hosts": {"localhost": {**HERE, "preflight_plan": {}}},
            "children": {"lab": {"hosts": lab, "vars": {"ansible_become": False}}},
        }
    }
    untune = {"import_playbook": str(ROOT / "playbooks/untune.yml")}
    done = plays.run(
        tmp_path,
        inventory,
        untune,
        ANSIBLE_SSH_RETRIES="0",
        ANSIBLE_ROLES_PATH=str(tmp_path / "roles"),
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 4, lines
    assert (
        "  server: 0 settings of the machine are as they were found (nothing was left to do)"
        in lines
    )
    assert lines[-1] == TOLD


def test_a_stage_without_an_application_is_refused(tmp_path: Path) -> None:
    """Such as deploy.yml behind tune.yml, which planned for none."""
    planned = {"preflight_plan": {"stack": None}, "run_begun": True}
    inventory = {"all": {"hosts": {"localhost": {**HERE, **planned}}}}
    done = plays.run(
        tmp_path, inventory, {"import_playbook": str(ROOT / "playbooks" / "context.yml")}
    )
    assert done.returncode == 2
    assert "framework: the first playbook of this command" in done.stdout.splitlines()[-1]
