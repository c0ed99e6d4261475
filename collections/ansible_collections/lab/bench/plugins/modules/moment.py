"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: moment
short_description: Set a start time for several hosts, each by its own clock
description:
  - Reads each host's clock from its node_exporter, over the management network, and adds its
    offset from the controller's clock.
options:
  exporters:
    description: URL of the node_exporter of each host.
    type: dict
    required: true
  seconds:
    description: Seconds from now until the start.
    type: float
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Set the start time of both clients
  lab.bench.moment:
    exporters: {client: "http://10.77.0.12:9100/metrics", clientb: "http://10.77.0.13:9100/metrics"}
    seconds: 10
  register: moment
"""

RETURN = """
begin:
  description: Start time of each host, unix seconds of its own clock.
  type: dict
  returned: success
"""
