"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: document
short_description: Write a JSON document on the controller, whole or not at all
description: Check mode is supported.
options:
  path:
    description: File to write; its directory is made where it is missing.
    type: path
    required: true
  content:
    description: What to write.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Write the ledger
  lab.bench.document:
    path: results/latest/tuning.json
    content: {schema: lab/1}
"""

RETURN = """# """
