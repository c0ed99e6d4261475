"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: verify_bundle
short_description: Derive every document of a bundle again from its raw files, and compare
description:
  - Unpacks the archive in a temporary folder, which it removes. It needs no host, no network and no
    rights. An archive that is not as bundle wrote it is refused by the name of what is wrong.
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
- name: See whether its numbers are those of its raw files
  lab.bench.verify_bundle:
    bundle: run.tar.gz
    root: .
"""

RETURN = """
same:
  description: Whether every document came out as the bundle has it.
  type: bool
  returned: success
revision:
  description: Revision of the lab that made the run.
  type: str
  returned: success
lines:
  description: The outcome in words, with the place and both values of what differs.
  type: list
  elements: str
  returned: success
"""
