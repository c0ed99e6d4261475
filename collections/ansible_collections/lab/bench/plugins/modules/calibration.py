"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: calibration
short_description: Write calibration.json from a new measurement or a recent one
description:
  - Keeps the raw output of iperf3 and ping below calibration/link/, and the conditions of the
    measurement in conditions.json.
  - Without that output, looks in all runs for a calibration of the last hour under the same
    conditions, and copies its raw files.
options:
  dir:
    description: Folder of the raw files in the run's directory; the document is beside it.
    type: path
    required: true
  repetition:
    description: Number of this calibration in the run.
    type: int
    required: true
  link:
    description: >-
      Output of the programs that measured the link, as client_to_server and server_to_client of
      iperf3, the same with several_ before where several streams were measured, and ping. Without
      it the module looks for an earlier calibration.
    type: dict
  hosts:
    description: Inventory names of the server and the client; their tuning.json is a condition too.
    type: list
    elements: str
    required: true
  conditions:
    description: Everything else that a calibration depends on.
    type: dict
    required: true
  generator:
    description: Generator of the measurements that follow.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Derive the calibration
  lab.bench.calibration:
    dir: results/latest/calibration
    repetition: 1
    link: {ping: "{{ ping.stdout }}"}
    hosts: [server, client]
    conditions: {rate: 1000}
    generator: oha
"""

RETURN = """
found:
  description: Whether there is a calibration; always true for a new measurement.
  type: bool
  returned: success
reused:
  description: Which run measured it and how long ago, in words.
  type: str
  returned: where an earlier calibration is reused
calibration:
  description: The content of calibration.json.
  type: dict
  returned: where found
text:
  description: The calibration in one or two lines.
  type: str
  returned: where found
"""
