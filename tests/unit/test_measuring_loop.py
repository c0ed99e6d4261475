"""The loop of roles/measure goes on while any pair of hosts has something left, and no longer."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.unit import plays

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "measure"
# What each pair is told in turn of what is left. The first pair's second measurement fails, and is
# made again when as many were made as seemed left; the other's third is not needed after all.
LEFT = {"one": [2, 1, 1, 0], "two": [2, 0]}
ITEM = """
- name: Measure
  ansible.builtin.raw: echo {{ inventory_hostname }} {{ turn }} >>{{ playbook_dir }}/measured
"""
NEXT = """
- name: Decide
  ansible.builtin.set_fact:
    turn: "{{ turn | default(-1) | int + 1 }}"

- name: Remember
  ansible.builtin.set_fact:
    measure_next:
      item: "{{ (left[inventory_hostname][turn | int] > 0) | ternary({'cell_id': 'a'}, none) }}"
      left: "{{ left[inventory_hostname][turn | int] }}"
"""


def test_what_fails_is_made_again_and_what_is_not_needed_is_not(tmp_path: Path) -> None:
    for name in ("batch", "slot"):
        shutil.copy(ROLE / "tasks" / f"{name}.yml", tmp_path)
    for name, text in (("measurement", ITEM), ("next", NEXT), ("check_hosts", "[]")):
        (tmp_path / f"{name}.yml").write_text(text)
    known = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    pairs = {
        name: {
            "ansible_connection": "local",
            "host_check_pair": {"client": name, "clients": [name], "hosts": [name]},
        }
        for name in LEFT
    }
    groups: dict[str, Any] = {name: {"hosts": pairs} for name in ("lab", "servers")}
    inventory = {"all": {"children": groups}}
    play = {
        "hosts": "lab",
        "vars": {**known, "left": LEFT},
        "tasks": [{"ansible.builtin.include_tasks": f"{name}.yml"} for name in ("next", "batch")],
    }
    done = plays.run(tmp_path, inventory, play)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = (tmp_path / "measured").read_text().splitlines()
    assert sorted(measured) == ["one 0", "one 1", "one 2", "two 0"]
