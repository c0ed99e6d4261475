"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: interpreter
short_description: Have a Python on the controller
description:
  - Downloads it with uv to a folder below .cache/. Does nothing where it is there.
  - Does the same in check mode, as nothing but this cache changes.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  python:
    description: Its version, such as 3.14 or 3.14t.
    type: str
    required: true
  machine:
    description: Machine of the host that it is for, as uname -m prints it; unset, the controller's.
    type: str
author: the lab's developers
"""

EXAMPLES = """
- name: Have a free-threaded Python
  lab.bench.interpreter:
    root: "{{ playbook_dir }}"
    python: 3.14t
"""

RETURN = """
folder:
  description: Path of its folder on the controller, named after the exact version.
  type: str
  returned: always
"""
