"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: moment
short_description: Set the moment at which several hosts begin, each by its own clock
description:
  - Runs on the controller. Reads each host's clock from its node_exporter, over the management
    network, and adds what it is ahead of the controller's.
options:
  exporters:
    description: Host to the URL of its node_exporter.
    type: dict
    required: true
  seconds:
    description: How far ahead the moment is, seconds.
    type: float
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Set the moment at which both begin
  lab.bench.moment:
    exporters: {client: "http://10.77.0.12:9100/metrics", clientb: "http://10.77.0.13:9100/metrics"}
    seconds: 10
  register: moment
"""

RETURN = """
begin:
  description: Host to the moment, unix seconds of its own clock.
  type: dict
  returned: success
"""
