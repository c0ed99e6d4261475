"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: verdict
short_description: End the playbook with the exit status of a run's verdict
description:
  - Reads verdict.json. The callback lab.bench.terminal ends ansible-playbook with the status,
    unless a task failed.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  undecided_fails:
    description: Whether a metric that is undecided gives status 4.
    type: bool
    default: false
author: the lab's developers
"""

EXAMPLES = """
- name: End with the status of the verdict
  lab.bench.verdict:
    run_dir: results/latest
"""

RETURN = """
answer:
  description: slower, faster, no difference or undecided.
  type: str
  returned: success
exit_status:
  description: 3 where the head is slower, 4 where it is undecided and that fails, else 0.
  type: int
  returned: success
"""
