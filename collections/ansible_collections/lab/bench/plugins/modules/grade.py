"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: grade
short_description: Make the table of a class from the bundles of a lesson
description:
  - Verifies each bundle, and reads its lesson as derived again.
  - Writes grades.csv beside the bundles; writes nothing in check mode.
options:
  bundles:
    description: Folder with the bundles, *.tar.gz.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Grade a class
  lab.bench.grade:
    bundles: /tmp/class
    root: "{{ playbook_dir | dirname }}"
"""

RETURN = """
path:
  description: Path of grades.csv.
  type: str
  returned: success
lines:
  description: The table and what it says, for the terminal.
  type: list
  elements: str
  returned: success
"""
