"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: document
short_description: Write a JSON document on the controller, whole or not at all
description: Supports check mode.
options:
  path:
    description: File to write; its directory is created if it is missing.
    type: path
    required: true
  content:
    description: Content of the document.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Write the ledger
  lab.bench.document:
    path: results/latest/tuning.json
    content: {schema: lab/2}
"""

RETURN = """# """
