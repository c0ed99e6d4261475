"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: arrive
short_description: Move files fetched from a host to their places in the run
description:
  - Never overwrites an existing file.
  - Also moves files that an earlier controller fetched and did not move.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  arrived:
    description: The folder that this host's files are fetched into; it may be absent.
    type: path
    required: true
  host:
    description: The host's name.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Move what arrived to its place
  lab.bench.arrive:
    run_dir: results/latest
    arrived: results/latest/.arriving-server
    host: server
"""

RETURN = """# """
