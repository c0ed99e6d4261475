"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: settle
short_description: Derive what an earlier controller left, and keep as failed what it cut off
options:
  run_dir:
    description: The run's directory, with what the hosts had already fetched.
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
  unfetched:
    description: Of each host whose files could not be fetched its pair, by its server, and why.
    type: list
    elements: dict
    default: []
author: the lab's developers
"""

EXAMPLES = """
- name: Derive what an earlier controller left
  lab.bench.settle:
    run_dir: results/latest
    root: .
"""

RETURN = """# """
