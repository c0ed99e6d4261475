"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: exercise
short_description: Tell a lesson's reader what comes next, and remember it
description:
  - Keeps in reader.json when the exercise began, the hints given, and whether the lab solved it,
    and writes lesson.json and the pages again.
  - After a check, tells its verdict.
options:
  run_dir:
    description: Directory of the run.
    type: path
    required: true
  root:
    description: Top directory of the lab, which has the templates and the pictures.
    type: path
    required: true
  stage:
    description: exercise, hint, check or solve.
    type: str
    required: true
  hosts:
    description: Name of each host -> address, user, port, key and arguments of ssh.
    type: dict
    default: {}
author: the lab's developers
"""

EXAMPLES = """
- name: Give the next hint
  lab.bench.exercise:
    run_dir: "{{ preflight_plan.run_dir }}"
    root: "{{ playbook_dir | dirname }}"
    stage: hint
"""

RETURN = """
red:
  description: What to do after a check that does not find the fault gone; empty after any other.
  type: str
  returned: success
"""
