"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: verify_bundle
short_description: Derive every document of a bundle again from its raw files, and compare
description:
  - Unpacks the archive in a temporary folder and removes it afterwards. Needs no host, no network
    and no privileges. Refuses an archive that differs from what lab.bench.bundle writes, and names
    the difference.
options:
  bundle:
    description: The archive.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Verify the numbers of a bundle
  lab.bench.verify_bundle:
    bundle: run.tar.gz
    root: .
"""

RETURN = """
same:
  description: Whether every derived document is the same as the bundle's.
  type: bool
  returned: success
revision:
  description: Revision of the lab that made the run.
  type: str
  returned: success
lines:
  description: The result in words, with the place and both values of each difference.
  type: list
  elements: str
  returned: success
"""
