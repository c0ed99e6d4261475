"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: given
short_description: Refuse what was given with -e and is read by nothing
description:
  - Reads what the user gave with C(-e), as words, as JSON or as a file.
  - Refuses a name that is neither an option of a role, nor in the inventory, nor read by a
    playbook, with the nearest that is; and a value that an option of a role does not take.
  - Reads only; check mode is supported and does the same.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  specs:
    description: The main variables, by name; they are suggested before any other.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse what nothing reads
  lab.bench.given:
    root: "{{ playbook_dir }}"
    specs: "{{ options }}"
"""

RETURN = """
names:
  description: What was given, by name.
  type: list
  elements: str
  returned: success
"""
