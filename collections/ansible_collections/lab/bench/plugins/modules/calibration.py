"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: calibration
short_description: Write calibration.json from what was measured
description: Keeps the raw output of iperf3 and ping beside it, below calibration/link/.
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
      iperf3-server_to_client.json and ping.txt.
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
    generator: oha
    root: .
"""

RETURN = """
calibration:
  description: The content of calibration.json.
  type: dict
  returned: success
text:
  description: The same in two or three lines.
  type: str
  returned: success
"""
