"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: calibration
short_description: Write calibration.json from what was measured, now or a while ago
description:
  - Keeps the raw output of iperf3 and ping beside it, below calibration/link/, and in
    conditions.json under what it was measured.
  - Without that output looks in all runs for one of the last hour that was measured under the same
    conditions, and copies its raw files.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  name:
    description: Name of the document and of the folder of its raw files.
    type: str
    default: calibration
  repetition:
    description: Number of this calibration in the run.
    type: int
    required: true
  link:
    description: >-
      File name to content of what the link's programs printed, iperf3-client_to_server.json,
      iperf3-server_to_client.json and ping.txt. Without it an earlier calibration is looked for.
    type: dict
  hosts:
    description: Inventory names of the server and the client, whose tuning.json is a condition too.
    type: list
    elements: str
    required: true
  conditions:
    description: All else that a calibration depends on; two that have the same are alike.
    type: dict
    required: true
  generator:
    description: Generator of the measurements to come.
    type: str
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Derive the calibration
  lab.bench.calibration:
    run_dir: results/latest
    repetition: 1
    link: {ping.txt: "{{ ping.stdout }}"}
    hosts: [server, client]
    conditions: {rate: 1000}
    generator: oha
    root: .
"""

RETURN = """
found:
  description: Whether there is one; always true of what was measured now.
  type: bool
  returned: success
said:
  description: Whose it is and how old, in words.
  type: str
  returned: where an earlier one is used again
calibration:
  description: The content of calibration.json.
  type: dict
  returned: where found
text:
  description: The same in two or three lines.
  type: str
  returned: where found
"""
