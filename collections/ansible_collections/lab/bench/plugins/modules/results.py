"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: results
short_description: Derive result.json, summary.json, its exports and manifest.json
description:
  - Derives each missing result.json from the repetition's raw files. Derives the other documents
    again from the files on disk; the same files give the same documents.
  - Checks each document against its record in loadlab/run/model before writing it.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
  hosts:
    description: Description of each host for the manifest, by inventory name.
    type: dict
    required: true
  instances:
    description: >-
      Host to its cloud instance, as Found in loadlab/hosts/ec2_price.py has it; empty for a host
      that is none.
    type: dict
    default: {}
  logs:
    description: Log of the services of each host, by inventory name.
    type: dict
    required: true
  controller:
    description: Description of the controller for the manifest.
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
unmeasured:
  description: A study's cells without a valid repetition, each with the reason.
  type: list
  returned: success
resume:
  description: The command that resumes the run.
  type: str
  returned: success
void:
  description: Why no measurement of the run is valid, with the remedy; empty where one is.
  type: str
  returned: success
abandoned:
  description: Cells of any run that failed and have no valid repetition, each with the last error.
  type: list
  returned: success
"""
