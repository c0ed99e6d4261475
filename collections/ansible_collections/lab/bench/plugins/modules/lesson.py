"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: lesson
short_description: Write the pages of a lesson with the figures just measured
description:
  - Writes lesson.md and lesson.html into the run's folder, from its documents.
  - Writes nothing in check mode.
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
    description: run or transfer; after a transfer the lines have that part of the page alone.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Write the pages
  lab.bench.lesson:
    run_dir: results/latest
    root: "{{ playbook_dir | dirname }}"
    stage: run
"""

RETURN = """
lines:
  description: The text of lesson.md, the path of the page, and the commands that come next.
  type: list
  elements: str
  returned: success
missed:
  description: The claims that were not confirmed.
  type: list
  elements: str
  returned: success
"""
