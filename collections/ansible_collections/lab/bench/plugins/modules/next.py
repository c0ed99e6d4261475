"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: next
short_description: Derive what a pair measured last, and tell what it measures next
description:
  - What is next follows from plan.json and from the results on disk alone. Writes progress.json.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
  keep_requests:
    description: Keep every request's own times, compressed.
    type: bool
    default: false
  pair:
    description: Number of the pair, from 0.
    type: int
    required: true
  set_up:
    description: What the stages before have set the hosts up with; none where it is not known.
    type: dict
  last:
    description: What this returned before the measurement that is over; none at the beginning.
    type: dict
author: the lab's developers
"""

EXAMPLES = """
- name: Decide what is measured next
  lab.bench.next:
    run_dir: results/latest
    root: .
    pair: 0
  register: cell_next
"""

RETURN = """
item:
  description: The item, with repetition, switch and seconds_left; none where nothing is left.
  type: dict
  returned: success
left:
  description: How many measurements this pair still has, at most.
  type: int
  returned: success
began:
  description: When this invocation's load began, and how far the run was then.
  type: dict
  returned: success
"""
