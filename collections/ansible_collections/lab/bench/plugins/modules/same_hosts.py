"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: same_hosts
short_description: Resume a run only on the hosts that it was started on
description:
  - Records the hosts in plan.json. Refuses other hosts, and then writes nothing.
  - For an existing run, the new plan replaces the old one and the resuming command is added. The
    original start and command stay, and so do earlier comparisons. A plan without cells changes
    nothing.
  - A run that has measured nothing yet may resume on any hosts.
  - Reports changed where the hosts were not recorded yet. Supports check mode.
options:
  run_dir:
    description: Folder of the run on the controller.
    type: path
    required: true
  hosts:
    description: Identity of each host by its name, from the filter lab.bench.host_identity.
    type: dict
    required: true
  instances:
    description: Host to its cloud instance with type and image; empty for a host that is none.
    type: dict
    default: {}
  pairs:
    description: The host pairs, from the filter lab.bench.pairs.
    type: list
    elements: dict
    required: true
  now:
    description: What plan.json would be for a new run.
    type: dict
  new:
    description: Whether the run is new; then only the plan of plan.json is written again.
    type: bool
    default: false
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse other hosts than those of the run
  lab.bench.same_hosts:
    run_dir: results/example
    hosts: {server: {os: debian 13, cores: 8}, client: {os: debian 13, cores: 8}}
    pairs: [{number: 0, hosts: [server, client]}]
"""

RETURN = """# """
