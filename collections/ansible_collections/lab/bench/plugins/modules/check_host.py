"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: check_host
short_description: Refuse a host that does not meet the requirements of a run
description:
  - Fails with one sentence for each problem, with value and remedy.
  - Changes nothing. Supports check mode.
options:
  host:
    description: The host, from the filter lab.bench.parse_probe.
    type: dict
    required: true
  name:
    description: Its name in the inventory.
    type: str
    required: true
  machine_ids:
    description: Machine id of each host by its name, with the id of its boot.
    type: dict
    required: true
  test_address:
    description: IPv4 address of the host on the link that carries the load.
    type: str
    default: ""
  is_server:
    description: Whether it runs the stacks; else it runs the generators.
    type: bool
    required: true
  plan:
    description: The plan of the run, from lab.bench.plan.
    type: dict
    required: true
  binaries:
    description: Path of the user's own executable by the main variable that names it, or empty.
    type: dict
    required: true
  controller:
    description: An executable of the controller's architecture.
    type: path
    required: true
  fetched_sources:
    description:
      - For a host without internet, each source that the controller fetches from, as name:port.
    type: list
    elements: str
  root:
    description: The lab's folder.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse a host that cannot serve
  lab.bench.check_host:
    host: "{{ host_check_host }}"
    name: server
    machine_ids: {server: 5e0c, client: aaaa}
    test_address: 10.0.0.1
    is_server: true
    plan: "{{ preflight_plan }}"
    binaries: {oha_binary: /usr/local/bin/oha, wrk2_binary: ""}
    controller: "{{ ansible_playbook_python }}"
    root: /opt/lab
"""

RETURN = """# """
