"""The files of a matrix's candidate come to the run where the candidate is first set up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from tests.unit import plays

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "measure"
FETCH, KEEP = "Keep the files of a candidate with the run", "Keep the files of a variant's stack"


def tasks(files: list[Path]) -> list[dict[str, Any]]:
    """Both tasks of switch.yml in its order: fetching ``files``, and noting what is kept."""
    switch = yaml.safe_load((ROLE / "tasks" / "switch.yml").read_text())
    both: list[dict[str, Any]] = [task for task in switch if task["name"] in (FETCH, KEEP)]
    for task in both:
        if task["name"] == FETCH:
            task["loop"] = [{"src": str(file), "name": file.name} for file in files]
        else:
            del task["ansible.builtin.include_role"]
            task["ansible.builtin.set_fact"] = {"stack_kept": ["{{ __measure_stack_name }}"]}
    return both


def fetched(tmp_path: Path, **changed: Any) -> list[str]:
    """Set a candidate up, then put its files back; return each file that the run has since."""
    files = [tmp_path / name for name in ("app.service", "reverse_proxy.conf")]
    for file in files:
        file.write_text("text")
    stack = {"app": {"language": "python"}}
    item = {
        "stack": "one",
        "cell": {"tuning": "stock"},
        "switch": {"stack": "one", "tuning": None, "network": None},
    }
    run = tmp_path / "run"
    plan = {"run_dir": str(run), "matrix": {}, "gate": None, "stacks": {"one": stack}, **changed}
    play = {
        "hosts": "servers",
        "vars_files": [str(ROLE / "vars" / "main.yml")],
        "vars": {
            "measure_plan": plan,
            "measure_next": {"item": item},
            "host_check_pair": {"client": "server", "server": "server"},
        },
        "tasks": [
            # The role reads it as another host's.
            {"ansible.builtin.set_fact": {"measure_next": "{{ measure_next }}"}},
            *tasks(files),
            {"ansible.builtin.raw": f"rm -f {run}/stacks/one/reverse_proxy.conf"},
            *tasks(files),
        ],
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"servers": {"hosts": {"server": local}}}
    done = plays.run(tmp_path, inventory, play)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())


def test_files_are_fetched_at_the_first_set_up_alone(tmp_path: Path) -> None:
    # The second one, which was removed, is not fetched again where the candidate is put back.
    assert fetched(tmp_path) == ["stacks/one/app.service"]


def test_no_other_run_has_them(tmp_path: Path) -> None:
    assert fetched(tmp_path, matrix=None) == []
