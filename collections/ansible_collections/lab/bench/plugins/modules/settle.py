"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: settle
short_description: Derive what an interrupted controller left, and mark what it did not finish
options:
  run_dir:
    description: The run's directory, with everything fetched from the hosts.
    type: path
    required: true
  unfetched:
    description: Keys server (of its pair) and reason of each host whose files could not be fetched.
    type: list
    elements: dict
    default: []
author: the lab's developers
"""

EXAMPLES = """
- name: Complete the records of an interrupted run
  lab.bench.settle:
    run_dir: results/latest
"""

RETURN = """# """
