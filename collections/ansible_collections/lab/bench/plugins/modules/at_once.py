"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: at_once
short_description: Run a shell command on each of several hosts, all at once
description:
  - Waits for all. Fails with the reasons of all that fail.
  - Does what a loop with C(delegate_to) does, but takes no longer for more hosts.
options:
  commands:
    description: Shell command of each host by inventory name.
    type: dict
    required: true
  then:
    description: The same, for when all of I(commands) have ended well.
    type: dict
    default: {}
author: the lab's developers
"""

EXAMPLES = """
- name: End the load on both clients
  lab.bench.at_once:
    commands: {client: systemctl stop loadlab-load, clientb: systemctl stop loadlab-load}
"""

RETURN = """# """
