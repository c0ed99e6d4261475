"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: results
short_description: Derive result.json, summary.json, metrics.prom and manifest.json
description:
  - Every repetition's result.json is made from its raw files where it is not there yet; the rest is
    made anew from what is on disk, and comes out the same each time.
  - Each document is checked against files/schema/lab-1.schema.json before it is written.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
  keep_requests:
    description: Keep every request's own times, compressed.
    type: bool
    default: false
  hosts:
    description: Inventory name to what the host is.
    type: dict
    required: true
  logs:
    description: Inventory name to what its services logged.
    type: dict
    required: true
  controller:
    description: What the controller is.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Derive the results
  lab.bench.results:
    run_dir: results/latest
    root: .
    hosts: {}
    logs: {}
    controller: {}
"""

RETURN = """
table:
  description: The results as a short table for the terminal.
  type: str
  returned: success
missing:
  description: A study's cells without a valid repetition, each with why.
  type: list
  returned: success
given_up:
  description: Any run's cells that failed and have no valid repetition, each with why.
  type: list
  returned: success
"""
