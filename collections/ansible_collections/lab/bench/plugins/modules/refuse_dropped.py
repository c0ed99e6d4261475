"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: refuse_dropped
short_description: Go on with every host or not at all
description:
  - Ansible drops a host from the play if it is unreachable or a task failed on it. Asks the dropped
    hosts, all at once, whether they answer, and fails with what became of each.
  - Does nothing where no host was dropped.
options:
  hosts:
    description: Inventory names of the dropped hosts.
    type: list
    elements: str
    required: true
  resume_args:
    description: Command-line options that resume the run.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Go on with every host or not at all
  lab.bench.refuse_dropped:
    hosts: "{{ groups['lab'] | difference(ansible_play_hosts) }}"
    resume_args: -e run_id=example
"""

RETURN = """# """
