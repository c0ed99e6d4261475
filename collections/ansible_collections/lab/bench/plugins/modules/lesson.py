"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: lesson
short_description: Write the page of a lesson with the figures just measured
description:
  - Renders the lesson's text with the cells of summary.json into lesson.md beside it.
  - Writes nothing in check mode.
options:
  run_dir:
    description: Directory of the run.
    type: path
    required: true
  template:
    description: The lesson's text, docs/lessons/<name>.md.j2.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Write the page
  lab.bench.lesson:
    run_dir: results/latest
    template: docs/lessons/keepalive.md.j2
"""

RETURN = """
path:
  description: Path of the page.
  type: str
  returned: success
page:
  description: Its text.
  type: str
  returned: success
missed:
  description: The claims that were not confirmed.
  type: list
  elements: str
  returned: success
"""
