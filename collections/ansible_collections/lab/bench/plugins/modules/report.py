"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: report
short_description: Write report.html of a run, and index.html of all runs, from their documents
description:
  - Reads summary.json, calibration.json, tuning.json, manifest.json and every result.json of the
    run, and renders the template with them, escaped.
  - The same files give the same page, byte for byte. The page says which parts are missing.
    Fails on a malformed document and names it.
  - Then writes the page of all runs beside the run's directory. A run whose documents cannot be
    read is listed there with the reason.
  - Writes nothing in check mode.
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
  description: Path of the page.
  type: str
  returned: success
lines:
  description: >-
    One sentence on each comparison and each measured cell, the path of the report, and the next
    commands.
  type: list
  elements: str
  returned: success
"""
