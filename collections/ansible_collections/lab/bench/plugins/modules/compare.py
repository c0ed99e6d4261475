"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: compare
short_description: Compare the cells that several runs all measured
description:
  - Writes compare-<base>.json into the directory of the last head. Writes nothing in check mode.
  - The callback lab.bench.terminal ends ansible-playbook with the exit status, unless a task
    failed.
options:
  results:
    description: Directory of all runs.
    type: path
    required: true
  base:
    description: Names of the runs to compare with, with commas between.
    type: str
    required: true
  head:
    description: Names of the runs to compare, with commas between.
    type: str
    required: true
  undecided_fails:
    description: Whether a metric that is undecided gives status 4.
    type: bool
    default: false
author: the lab's developers
"""

EXAMPLES = """
- name: Compare today's run with yesterday's
  lab.bench.compare:
    results: results
    base: yesterday
    head: today
"""

RETURN = """
path:
  description: Path of the comparison.
  type: str
  returned: success
lines:
  description: The comparison in words, a line for each metric of each cell.
  type: list
  elements: str
  returned: success
answer:
  description: slower, faster, no difference or undecided.
  type: str
  returned: success
exit_status:
  description: 3 where a head is slower, 4 where one is undecided and that fails, else 0.
  type: int
  returned: success
"""
