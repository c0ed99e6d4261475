"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: lesson
short_description: Write the page of a lesson with the figures just measured
description:
  - Renders the lesson's text with the cells of summary.json into lesson.md beside it.
  - Check mode is supported and writes nothing.
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
  description: Where the page is.
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
