"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: own_exporter
short_description: Refuse a node_exporter that is not the host's own
description:
  - Runs on the controller. Reads one page of the exporter and compares when its machine was booted
    with what the host says. Where the address leads to another machine's exporter, the telemetry
    would be that one's.
options:
  url:
    description: The page, as the controller reads it.
    type: str
    required: true
  booted:
    description: When the host was booted, unix seconds, as its C(/proc/stat) has it.
    type: int
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Refuse telemetry that is another machine's
  lab.bench.own_exporter:
    url: http://127.77.1.11:9100/metrics
    booted: 1795224996
"""

RETURN = """# """
