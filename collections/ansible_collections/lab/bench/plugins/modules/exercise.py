"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: exercise
short_description: Tell a lesson's reader what comes next, and remember it
description:
  - Keeps in reader.json when the exercise began, the hints given, and whether the lab solved it.
  - After a check, tells its verdict.
options:
  run_dir:
    description: Directory of the run.
    type: path
    required: true
  exercise:
    description: The plan's exercise.
    type: dict
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
    exercise: "{{ preflight_plan.study.lesson.exercise }}"
    stage: hint
"""

RETURN = """
cured:
  description: Whether the last check found the fault gone.
  type: bool
  returned: success
"""
