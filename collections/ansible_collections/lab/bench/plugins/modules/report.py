"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: report
short_description: Write report.html of a run from its documents
description:
  - Runs on the controller. Reads summary.json, calibration.json, tuning.json, manifest.json and
    every result.json of the run, and renders the template with them, escaped.
  - The same files give the same page, byte for byte. Parts that are not there yet are said to be
    missing; a broken document is an error that names it.
  - Supports check mode, in which nothing is written.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  template:
    description: The page's Jinja template.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Write the report
  lab.bench.report:
    run_dir: results/latest
    template: roles/report/templates/report.html.j2
"""

RETURN = """
path:
  description: The page that was written.
  type: str
  returned: success
lines:
  description: >-
    One sentence on each comparison and each measured cell, where the report is, and what to do
    next.
  type: list
  elements: str
  returned: success
"""
