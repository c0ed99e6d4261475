"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: refuse_dropped
short_description: Go on with every host or not at all
description:
  - Ansible drops a host from the play if it is unreachable or a task failed on it. Fails where a
    host was dropped; the callback lab.bench.terminal then tells why it was.
options:
  hosts:
    description: Inventory names of the dropped hosts; empty for none.
    type: list
    elements: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Go on with every host or not at all
  lab.bench.refuse_dropped:
    hosts: "{{ groups['lab'] | difference(ansible_play_hosts) }}"
"""

RETURN = """# """
