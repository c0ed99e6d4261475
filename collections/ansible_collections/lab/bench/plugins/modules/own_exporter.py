"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: own_exporter
short_description: Refuse a node_exporter that is not the host's own
description:
  - Reads one page of the exporter and compares its boot time with the host's. If the address led
    to another machine's exporter, the telemetry would be that machine's.
options:
  url:
    description: URL of the page, as the controller reaches it.
    type: str
    required: true
  booted:
    description: Boot time of the host from its C(/proc/stat), unix seconds.
    type: int
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse telemetry of another machine
  lab.bench.own_exporter:
    url: http://127.77.1.11:9109/metrics
    booted: 1795224996
"""

RETURN = """# """
