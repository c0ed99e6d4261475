"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: room
short_description: Refuse a controller with too little disk or memory for a run
description:
  - Fails with the value, what is needed and the remedy.
  - Changes nothing. Supports check mode.
options:
  plan:
    description: The plan of the run, from lab.bench.plan.
    type: dict
    required: true
  root:
    description: Top directory of the lab, which holds results/.
    type: path
    required: true
  hosts:
    description: Number of host pairs that are containers of the controller.
    type: int
    default: 0
  base_bytes:
    description: What these hosts need besides the measurements, in bytes.
    type: int
    default: 0
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse a controller without room
  lab.bench.room:
    plan: "{{ preflight_plan }}"
    root: /opt/lab
"""

RETURN = """
line:
  description: What the run needs on each machine, in words; empty where nothing is to be measured.
  type: str
  returned: success
"""
