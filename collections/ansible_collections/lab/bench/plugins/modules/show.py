"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: show
short_description: Print the end of a run again, or its progress
description:
  - Reads the run's documents and changes nothing, even while another process holds the run.
  - Does the same in check mode.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Show the latest run
  lab.bench.show:
    run_dir: results/latest
"""

RETURN = """# """
