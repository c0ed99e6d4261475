"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: show
short_description: Tell the end of a run again, or how far it is
description:
  - Reads the run's documents on the controller and changes nothing, whoever holds the run.
  - Supports check mode, in which it does the same.
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
