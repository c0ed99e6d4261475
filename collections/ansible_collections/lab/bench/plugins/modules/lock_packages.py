"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: lock_packages
short_description: Lock the packages of an application from outside the tree
description:
  - Resolves them with uv, together with the application servers, into a file below .cache/ that
    names each package's version and hashes. Does nothing where the file is there.
  - Does the same in check mode, as nothing but this cache changes.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  source:
    description: Folder of the application, relative to root or absolute.
    type: str
    required: true
  requirements:
    description: The file in it that lists its packages, such as requirements.txt.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Lock the packages
  lab.bench.lock_packages:
    root: "{{ playbook_dir }}"
    source: /home/me/shop
    requirements: requirements.txt
"""

RETURN = """# """
