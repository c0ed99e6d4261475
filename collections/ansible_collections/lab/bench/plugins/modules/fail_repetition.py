"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: fail_repetition
short_description: Keep a measurement that failed as a record with its error
options:
  dest:
    description: Folder of the repetition on the controller; made where it is missing.
    type: path
    required: true
  record:
    description: What cell.json is to say where it is not there yet.
    type: dict
    required: true
  error:
    description: What went wrong.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Keep the failed measurement as a record
  lab.bench.fail_repetition:
    dest: results/latest/cells/example/rep-1
    record: {cell_id: example}
    error: the server did not answer
"""

RETURN = """# """
