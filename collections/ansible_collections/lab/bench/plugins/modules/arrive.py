"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: arrive
short_description: Move what was fetched from a host to its place in the run
description:
  - What is there already is never overwritten.
  - Moves what an earlier controller had fetched and not moved, too.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  arrived:
    description: The folder that this host's files are fetched into; it need not be there.
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
