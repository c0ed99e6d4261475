"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: same_hosts
short_description: Go on with a run where its hosts are those that it was begun on
description:
  - Writes into plan.json what the hosts are. Others are refused, and nothing is written.
  - Of a run that was there the new plan takes the old one's place, and the command that goes on
    with it is added; when and how it began stays, and what was compared. A plan without cells
    changes nothing.
  - A run that has measured nothing yet may go on with any hosts.
  - Changed where the hosts are not yet written down. Check mode is supported.
options:
  run_dir:
    description: Folder of the run on the controller.
    type: path
    required: true
  hosts:
    description: What each host is, by its name, as the filter lab.bench.identity has it.
    type: dict
    required: true
  pairs:
    description: The pairs of hosts, as the filter lab.bench.pairs has them.
    type: list
    elements: dict
    required: true
  now:
    description: What plan.json would be of a new run, where the run is an earlier one.
    type: dict
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse other hosts than the run was begun on
  lab.bench.same_hosts:
    run_dir: results/example
    hosts: {server: {os: debian 13, cores: 8}, client: {os: debian 13, cores: 8}}
    pairs: [{number: 0, hosts: [server, client]}]
"""

RETURN = """# """
