"""The files of a matrix's candidate come to the run where the candidate is first set up."""

from pathlib import Path
from typing import Any

import pytest
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


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Set a candidate of a matrix and a stack of another run up, then put its files back; return
    each file that the run has since."""
    folder = tmp_path_factory.mktemp("kept")
    files = [folder / name for name in ("app.service", "reverse_proxy.conf")]
    for file in files:
        file.write_text("text")
    runs: dict[str, Any] = {"matrix": {}, "other": None}
    inventory = {"servers": {"hosts": {"server": plays.LOCAL}}}
    plays_of_runs = [play(folder / name, matrix, files) for name, matrix in runs.items()]
    done = plays.run(folder, inventory, *plays_of_runs)
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        name: sorted(
            str(path.relative_to(folder / name))
            for path in (folder / name).rglob("*")
            if path.is_file()
        )
        for name in runs
    }


def play(run: Path, matrix: Any, files: list[Path]) -> dict[str, Any]:
    stack = {"app": {"language": "python"}}
    item = {
        "stack": "one",
        "cell": {"tuning": "stock"},
        "switch": {"stack": "one", "tuning": None, "network": None},
    }
    plan = {"run_dir": str(run), "matrix": matrix, "gate": None, "stacks": {"one": stack}}
    return {
        "hosts": "servers",
        "vars_files": [str(ROLE / "vars" / "main.yml")],
        "vars": {
            "measure_plan": plan,
            "measure_next": {"item": item},
            "host_check_pair": {"client": "server", "server": "server"},
        },
        "tasks": [
            # The role reads it as another host's.
            {"ansible.builtin.set_fact": {"measure_next": "{{ measure_next }}", "stack_kept": []}},
            *tasks(files),
            {"ansible.builtin.raw": f"rm -f {run}/stacks/one/reverse_proxy.conf"},
            *tasks(files),
        ],
    }


def test_files_are_fetched_at_the_first_set_up_alone(fetched: dict[str, list[str]]) -> None:
    # The second one, which was removed, is not fetched again where the candidate is put back.
    assert fetched["matrix"] == ["stacks/one/app.service"]


def test_no_other_run_has_them(fetched: dict[str, list[str]]) -> None:
    assert fetched["other"] == []
