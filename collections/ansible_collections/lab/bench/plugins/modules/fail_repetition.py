"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: fail_repetition
short_description: Record a failed measurement with its error
options:
  dest:
    description: Folder of the repetition on the controller; created if it is missing.
    type: path
    required: true
  record:
    description: Content of cell.json, if it does not exist yet.
    type: dict
    required: true
  error:
    description: The error message.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Record the failed measurement
  lab.bench.fail_repetition:
    dest: results/latest/cells/example/rep-1
    record: {cell_id: example}
    error: the server did not answer
"""

RETURN = """# """
