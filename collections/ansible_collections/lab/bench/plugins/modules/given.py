"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: given
short_description: Refuse names and values given with -e that nothing accepts
description:
  - Reads the variables that the user gave with C(-e), as words, as JSON or as a file.
  - Refuses a name that is neither an option of a role, nor in the inventory, nor read by a
    playbook, and suggests the closest known name. Refuses a value that a role's option does not
    accept.
  - Changes nothing; does the same in check mode.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  specs:
    description: The main variables by name, which are suggested first.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse unknown variables
  lab.bench.given:
    root: "{{ playbook_dir }}"
    specs: "{{ options }}"
"""

RETURN = """
names:
  description: Names of the variables that were given.
  type: list
  elements: str
  returned: success
"""
