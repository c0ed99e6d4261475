"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: next
short_description: Derive a host pair's last measurement and decide its next one
description:
  - The next measurement depends only on plan.json and the results on disk. Writes progress.json.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  pair:
    description: Number of the host pair, from 0.
    type: int
    required: true
  set_up:
    description: Set-up that the earlier stages applied to the hosts; empty where it is not known.
    type: dict
  last:
    description: What this module returned before the last measurement; empty at the start.
    type: dict
author: the lab's developers
"""

EXAMPLES = """
- name: Decide on the next measurement
  lab.bench.next:
    run_dir: results/latest
    pair: 0
  register: measure_next
"""

RETURN = """
item:
  description: The item, with repetition, switch and seconds_left; null where nothing is left.
  type: dict
  returned: success
left:
  description: Likely number of measurements that this pair has left; at least 1 while any is.
  type: int
  returned: success
began:
  description: When this invocation's load started, and the progress of the run then.
  type: dict
  returned: success
"""
